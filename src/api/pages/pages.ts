import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type GraphQLSchema, printSchema } from 'graphql';
import { origin } from '../http/addresses.ts';
import { prefersHtml, varyBy } from '../http/headers.ts';
import { info } from '../rest/openapi.ts';
import { guides } from './guides.ts';
import { asset, fill, open, policyOf, sendPage, styleOf } from './html.ts';
import { reference } from './reference.ts';

export interface PagesOptions {
  /** The version of this release. */
  version: string;
  schema: GraphQLSchema;
  /** Whether clients may read the schema. */
  introspection: boolean;
  /** Whether the GraphQL explorers are served. */
  explorer: boolean;
}

/**
 * Serves the pages and documents that need no key, and the files that browsers and crawlers request from every host.
 * Register it last, because the front page links only to existing routes.
 */
export const pages = fastifyPlugin(
  async (app: FastifyInstance, options: PagesOptions): Promise<void> => {
    app.decorate('errorPage', errorPage());
    const day = 'public, max-age=86400';
    const favicon = asset('favicon.ico');
    app.get('/favicon.ico', open, async (_request, reply) =>
      reply.header('cache-control', day).type('image/vnd.microsoft.icon').send(favicon),
    );
    app.get('/robots.txt', open, async (_request, reply) =>
      reply.header('cache-control', day).type('text/plain; charset=utf-8').send('User-agent: *\nDisallow: /\n'),
    );
    if (options.introspection) {
      const text = `${printSchema(options.schema)}\n`;
      app.get('/schema.graphql', open, async (_request, reply) => reply.type('text/plain; charset=utf-8').send(text));
    }
    await app.register(reference);
    await app.register(guides);
    serveFrontPage(app, options);
  },
  { name: 'pages' },
);

/** A link on the front page. */
interface PageLink {
  /** The member name in JSON. */
  name: string;
  path: string;
  /** The heading on the page. */
  group: string;
  title: string;
  text: string;
}

const links: PageLink[] = [
  {
    name: 'guides',
    path: '/guide',
    group: 'Guides',
    title: 'Guides',
    text: 'How to use it, operate it and change it.',
  },
  {
    name: 'errors',
    path: '/guide/errors',
    group: 'Guides',
    title: 'Errors',
    text: 'Every error code: what it means, and what to do.',
  },
  {
    name: 'reference',
    path: '/docs',
    group: 'REST',
    title: 'Reference',
    text: 'Every operation, to be tried there with your key.',
  },
  {
    name: 'openapi',
    path: '/v1/openapi.json',
    group: 'REST',
    title: 'OpenAPI',
    text: 'The contract, for generators of clients.',
  },
  {
    name: 'sandbox',
    path: '/graphql',
    group: 'GraphQL',
    title: 'Apollo Sandbox',
    text: 'Explore and try it. The page loads from Apollo: it needs the internet.',
  },
  {
    name: 'explorer',
    path: '/graphiql',
    group: 'GraphQL',
    title: 'GraphiQL',
    text: 'Explore and try it without the internet: all of it is served here.',
  },
  {
    name: 'schema',
    path: '/schema.graphql',
    group: 'GraphQL',
    title: 'Schema',
    text: 'The contract, in the schema definition language.',
  },
  { name: 'liveness', path: '/livez', group: 'Health', title: 'Liveness', text: 'The process runs.' },
  {
    name: 'readiness',
    path: '/readyz',
    group: 'Health',
    title: 'Readiness',
    text: 'It can serve: the database answers.',
  },
];

/** Serves `/`, with links to the pages and documents: HTML if the client prefers it, else JSON (RFC 9110 section 12.4.1). */
function serveFrontPage(app: FastifyInstance, { version, explorer }: PagesOptions): void {
  const about = { name: info.title, version, description: info.description };
  // `/graphql` answers GET even without its page.
  const isShown = (path: string) => app.hasRoute({ method: 'GET', url: path }) && (explorer || path !== '/graphql');
  const served = links.filter(({ path }) => isShown(path));
  const style = styleOf('front-page.css');
  const policy = policyOf("script-src 'self'", style.source, "img-src 'self'", "connect-src 'self'");
  const page = fill(asset('front-page.html').toString(), {
    ...Object.fromEntries(Object.entries(about).map(([name, value]) => [name, escaped(value)])),
    style: style.element,
    icon: asset('icon.svg').toString(),
    sections: Object.entries(Object.groupBy(served, ({ group }) => group))
      .map(sectionOf)
      .join('\n'),
    // Filled per request.
    address: '%address%',
  });
  app.get('/', open, async (request, reply) => {
    const address = origin(request);
    varyBy(reply, 'Accept');
    if (prefersHtml(request)) return sendPage(reply, { html: page.replaceAll('%address%', escaped(address)), policy });
    return { ...about, links: Object.fromEntries(served.map(({ name, path }) => [name, address + path])) };
  });
}

/**
 * The page that a browser gets in place of an Error body. Without a key it is the same for every address, so it tells
 * nothing about which of them exist.
 */
function errorPage(): FastifyInstance['errorPage'] {
  const style = styleOf('front-page.css');
  const policy = policyOf(style.source);
  const html = fill(asset('error-page.html').toString(), {
    style: style.element,
    icon: asset('icon.svg').toString(),
    ...Object.fromEntries(['title', 'message', 'home'].map((name) => [name, `%${name}%`])),
  });
  return ({ status, message }, request, reply) => {
    const shown =
      status === 401
        ? { title: 'An API key is needed', message: 'Without a valid API key, nothing is shown at this address.' }
        : { title: 'Not found', message };
    return sendPage(reply, { html: fill(html, { ...shown, home: escaped(origin(request)) }), policy });
  };
}

function sectionOf([group, links = []]: [string, PageLink[] | undefined]): string {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${links.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf({ path, title, text }: PageLink): string {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
