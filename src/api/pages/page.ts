import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { pageHeaders } from '../http/headers.ts';

/** An HTML page, and its Content-Security-Policy. Both are the same in every answer. */
export interface Page {
  html: string;
  policy: string;
}

/** Serves a page, which needs no key, at a path of one segment. */
export function servePage(app: FastifyInstance, path: string, page: Page): void {
  const open = { schema: { hide: true }, config: { public: true } };
  app.get(path, open, async (_request, reply) => sendPage(reply, page));
  // The page's links are relative, so that they hold behind a proxy that strips a prefix.
  app.get(`${path}/`, open, async (_request, reply) => reply.redirect(`..${path}`, 308));
}

export function sendPage(reply: FastifyReply, { html, policy }: Page): FastifyReply {
  return reply.headers(pageHeaders(policy)).type('text/html; charset=utf-8').send(html);
}

/** The way to the front page, at the left end of every other page's bar (`theme.css`). */
export const home =
  '<a class="home" href="./"><img src="docs/static/icon.svg" alt="" width="32" height="32"> Animal Store</a>';

/** An element that holds data for scripts. It is not run, so no policy has to allow it. */
export function dataElement(id: string, data: unknown): string {
  return `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`;
}

/** The source expression of an inline script or style (Content Security Policy Level 3, section 2.3.1). */
export function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
