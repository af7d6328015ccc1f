import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fastifyStatic, { type FastifyStaticOptions } from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { securityHeaders } from '../http/headers.ts';

/** The root folder, which contains `web/` and `dist/`. */
export const root = join(import.meta.dirname, '../../../..');

/** An HTML page and its Content-Security-Policy. Its links are relative: a proxy may serve it below another path. */
export interface Page {
  html: string;
  policy: string;
}

/** Headers of a page. It may load what its policy allows, and must not be framed. */
export const pageHeaders = (policy: string) => ({
  ...securityHeaders,
  'content-security-policy': `${policy};frame-ancestors 'none'`,
  'origin-agent-cluster': '?1',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
});

/** Reads a file of `web/assets/`. */
export function asset(name: string): Buffer {
  return readFileSync(join(root, 'web/assets', name));
}

/** Replaces the placeholders (`%name%`) of a page. @param values HTML */
export function fill(page: string, values: Record<string, string>): string {
  return page.replace(/%(\w+)%/g, (_, name: string) => values[name] ?? '');
}

/** The options of routes that need no key and are not part of the REST contract. */
export const open = { schema: { hide: true }, config: { public: true } };

/** Serves a page. */
export function servePage(app: FastifyInstance, path: string, page: Page): void {
  app.get(path, open, async (_request, reply) => sendPage(reply, page));
  app.get(`${path}/`, open, async (_request, reply) => reply.redirect(`../${basename(path)}`, 308));
}

/** Serves the files of a folder, without a key. */
export async function serveFiles(app: FastifyInstance, policy: string, options: FastifyStaticOptions): Promise<void> {
  // A worker has the policy of its script, not the page's.
  const setHeaders = (reply: FastifyReply) => reply.headers(pageHeaders(policy));
  await app.register(async (own) => {
    own.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true };
    });
    await own.register(fastifyStatic, { index: false, setHeaders, ...options });
  });
}

export function sendPage(reply: FastifyReply, { html, policy }: Page): FastifyReply {
  return reply.headers(pageHeaders(policy)).type('text/html; charset=utf-8').send(html);
}

/** Creates a policy that allows only these sources. */
export function policyOf(...sources: string[]): string {
  return ["default-src 'none'", ...sources, "base-uri 'none'", "form-action 'none'"].join(';');
}

/** Creates an element with data for scripts. It is not executed, so the policy need not allow it. */
export function dataElement(id: string, data: unknown): string {
  return `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`;
}

/** The style of a page, with the colours of all pages: the element, and its source in the policy. */
export function styleOf(name: string): { element: string; source: string } {
  const text = `${asset('theme.css')}${asset(name)}`;
  return { element: `<style>${text}</style>`, source: `style-src ${hashOf(text)}` };
}

/** The source expression of an inline script or style (Content Security Policy Level 3, section 2.3.1). */
export function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
