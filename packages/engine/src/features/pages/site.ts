import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { publicRoute, serveDocument } from '../../api/http/documents.ts';
import { acceptedTypes } from '../../api/http/negotiation.ts';
import { asset, escaped, fill, type HtmlPage } from './html.ts';

/** The pages of the bar after the front page, by their paths. */
const barLinks = {
  '/guide': 'Guides',
  '/docs': 'REST',
  '/graphiql': 'GraphiQL',
  '/graphql': 'Sandbox',
};

const types: Record<string, string | undefined> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/vnd.microsoft.icon',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/**
 * Headers of a page. It may load what its policy allows, and must not be
 * framed.
 */
export const pageHeaders = (policy: string) => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `${policy};frame-ancestors 'none'`,
  'origin-agent-cluster': '?1',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
});

/** Whether a client prefers HTML to JSON, as browsers do. */
export function prefersHtml(request: FastifyRequest) {
  const [first] = acceptedTypes(request, ['application/json', 'text/html']);
  return first === 'text/html';
}

/** The pages of a service, which need no key. All of them have one bar. */
export class Site {
  readonly #title;
  readonly #icon = asset('static/icon.svg').toString();

  constructor(
    readonly app: FastifyInstance,
    private readonly hasSandbox: boolean,
  ) {
    this.#title = escaped(app.info.title);
  }

  /** Only after the start every route is known. */
  isServed(path: string) {
    // GraphQL answers GET even without a page.
    if (path === '/graphql') return this.hasSandbox;
    return this.app.hasRoute({ method: 'GET', url: path });
  }

  /** The path of the first list, and what it lists: `Books`. */
  firstList() {
    const { paths = {} } = this.app.swagger();
    const [path = ''] = Object.keys(paths);
    const summary = paths[path]?.get?.summary ?? 'Items';
    const items = summary.replace(/^List /, '');
    return { path, title: items.charAt(0).toUpperCase() + items.slice(1) };
  }

  /**
   * Creates the links that all pages have, and marks the page's own.
   *
   * @param path of the page, such as `/guide/errors`
   * @param top the way from the page to the front page
   */
  bar(path: string, top = path.lastIndexOf('/') > 0 ? '../' : './') {
    const [section] = /^\/[^/]*/.exec(path) ?? [];
    const titles = { '/': escaped(this.firstList().title), ...barLinks };
    const items: string[] = [];
    for (const [path, title] of Object.entries(titles)) {
      if (!this.isServed(path)) continue;
      const mark = path === section ? ' aria-current="true"' : '';
      items.push(`<a href="${top}${path.slice(1)}"${mark}>${title}</a>`);
    }
    return `<a class="home" href="${top}">${this.#icon} ${this.#title}</a>
<nav aria-label="Pages">${items.join('\n')}</nav>`;
  }

  /** Serves a page, which is read at the first request. */
  servePage(path: string, read: () => string | Buffer, policy: string) {
    const page = () => this.#filled(read().toString(), this.bar(path));
    serveDocument(this.app, path, page, pageHeaders(policy));
    this.app.get(`${path}/`, publicRoute, async (_request, reply) =>
      reply.redirect(`../${basename(path)}`, 308),
    );
  }

  sendPage(reply: FastifyReply, { html, policy }: HtmlPage, bar: string) {
    return reply.headers(pageHeaders(policy)).send(this.#filled(html, bar));
  }

  #filled(html: string, bar: string) {
    return fill(html, { bar, service: this.#title });
  }

  serveFile(path: string, read: () => string | Buffer, headers: object = {}) {
    const type = types[extname(path)] ?? 'application/octet-stream';
    serveDocument(this.app, path, read, { ...headers, 'content-type': type });
  }

  /**
   * Serves the files of a folder. One route per file: an address without a file
   * needs a key, as any other.
   */
  serveFiles(prefix: string, folder: string, headers = {}) {
    for (const name of readdirSync(folder)) {
      const read = () => readFileSync(join(folder, name));
      this.serveFile(`${prefix}/${name}`, read, headers);
    }
  }
}
