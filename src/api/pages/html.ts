import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { root } from '../../config/config.ts';
import { securityHeaders } from '../http/headers.ts';
import { compressedOnce, tagOf } from '../http/negotiation.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Creates the links that all pages have, and marks the page's own.
     *
     * @param path of the page, such as `/guide/errors`
     * @param top the way from the page to the front page
     */
    bar(path: string, top?: string): string;
  }
}

import { origin } from '../http/server.ts';

/**
 * An HTML page and its Content-Security-Policy. Its links are relative: a proxy
 * may serve it below another path.
 */
export interface HtmlPage {
  html: string;
  policy: string;
}

/**
 * Headers of a page. It may load what its policy allows, and must not be
 * framed.
 */
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

/**
 * Replaces the placeholders (`%name%`) of a page that have values. @param
 * values HTML
 */
export function fill(page: string, values: Record<string, string>): string {
  return page.replace(
    /%(\w+)%/g,
    (placeholder, name: string) => values[name] ?? placeholder,
  );
}

/**
 * The options of routes that need no key and are not part of the REST contract.
 */
export const publicRoute = { schema: { hide: true }, config: { public: true } };

/**
 * Serves an HTML page, which is read at the first request, when every route of
 * the bar is known.
 */
export function servePage(
  app: FastifyInstance,
  path: string,
  read: () => string | Buffer,
  policy: string,
): void {
  const page = () => fill(read().toString(), { bar: app.bar(path) });
  serveFile(app, path, page, {
    ...pageHeaders(policy),
    'content-type': typeOf('.html'),
  });
  app.get(`${path}/`, publicRoute, async (_request, reply) =>
    reply.redirect(`../${basename(path)}`, 308),
  );
}

const types: Record<string, string | undefined> = {
  '.css': 'text/css; charset=utf-8',
  '.graphql': 'text/plain; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/vnd.microsoft.icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

export function typeOf(path: string): string {
  return types[extname(path) || path] ?? 'application/octet-stream';
}

/**
 * Sends content that is the same for every client. It is read at the first
 * request, and compressed once per coding.
 *
 * @param read with a parameter for content that names the address of the
 *   service (`origin`), which is kept for the last eight addresses
 */
export function keep(
  read: (address: string) => string | Buffer,
  headers: Record<string, string>,
) {
  const dependsOnAddress = read.length > 0;
  const kept = new LRUCache<string, { content: Buffer; tag: string }>({
    max: 8,
    memoMethod: (address) => {
      const content = Buffer.from(read(address));
      return { content, tag: tagOf(content, headers['content-type']) };
    },
  });
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const address = dependsOnAddress ? origin(request) : '';
    const { content, tag } = kept.memo(address);
    // Other content is in memory once, however many responses hold it.
    if (dependsOnAddress)
      request.server.unread.hold(request, reply, content.length);
    reply.contentTag = tag;
    return reply.headers(headers).send(content);
  };
}

/** Serves content (`keep`) without a key. */
export function serveFile(
  app: FastifyInstance,
  path: string,
  read: (address: string) => string | Buffer,
  headers: object = {},
): void {
  const all = { 'content-type': typeOf(path), ...headers };
  const options = { ...publicRoute, compress: compressedOnce };
  app.get(path, options, keep(read, all));
}

/**
 * Serves the files of a folder. One route per file: an address without a file
 * needs a key, as any other.
 */
export function serveFiles(
  app: FastifyInstance,
  prefix: string,
  folder: string,
  policy: string,
  more = {},
): void {
  // A worker has the policy of its script, not the page's.
  const headers = { ...pageHeaders(policy), ...more };
  for (const name of readdirSync(folder)) {
    serveFile(
      app,
      `${prefix}/${name}`,
      () => readFileSync(join(folder, name)),
      headers,
    );
  }
}

export function sendHtml(
  reply: FastifyReply,
  { html, policy }: HtmlPage,
): FastifyReply {
  const { url = '' } = reply.request.routeOptions;
  return reply
    .headers(pageHeaders(policy))
    .type(typeOf('.html'))
    .send(fill(html, { bar: reply.server.bar(url) }));
}

/** Creates a policy that allows only these sources. */
export function policyOf(...sources: string[]): string {
  return [
    "default-src 'none'",
    ...sources,
    "base-uri 'none'",
    "form-action 'none'",
  ].join(';');
}

/**
 * Creates an element with data for scripts. It is not executed, so the policy
 * need not allow it.
 */
export function dataElement(id: string, data: unknown): string {
  return `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`;
}

/**
 * The style of a page, with the colours of all pages: the element, and its
 * source in the policy.
 */
export function styleOf(name: string): { element: string; source: string } {
  const text = `${asset('static/theme.css')}${asset(name)}`;
  return {
    element: `<style>${text}</style>`,
    source: `style-src ${hashOf(text)}`,
  };
}

/**
 * The source expression of an inline script or style (Content Security Policy
 * Level 3, section 2.3.1).
 */
export function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
