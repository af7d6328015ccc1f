import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type GraphQLSchema, printSchema } from 'graphql';
import { type Config, releasedVersion, root } from '../../config/config.ts';
import { compressedOnce, prefersHtml, varyBy } from '../http/negotiation.ts';
import { origin } from '../http/server.ts';
import {
  asset,
  fill,
  keep,
  pageHeaders,
  policyOf,
  publicRoute,
  sendHtml,
  serveFile,
  serveFiles,
  servePage,
  styleOf,
  typeOf,
} from './html.ts';

interface PagesOptions
  extends Pick<Config['graphql'], 'introspection' | 'explorer'> {
  /** The name of the service, and a sentence about it. */
  info: { title: string; description: string };
  schema: GraphQLSchema;
}

/**
 * Serves the pages and documents that need no key, and the files that browsers
 * and crawlers request from every host. Register it last, because the front
 * page links only to existing routes.
 */
export const pages = fastifyPlugin(
  async (app: FastifyInstance, options: PagesOptions): Promise<void> => {
    const isServed = (path: string) =>
      app.hasRoute({ method: 'GET', url: path }) &&
      // It answers GET even without its page.
      (options.explorer || path !== '/graphql');
    app.decorate('bar', barOf(isServed));
    app.decorate('errorPage', errorPage(app.bar));
    const forDay = { 'cache-control': 'public, max-age=86400' };
    serveFile(app, '/favicon.ico', () => asset('favicon.ico'), forDay);
    serveFile(app, '/robots.txt', () => 'User-agent: *\nDisallow: /\n', forDay);
    if (options.introspection)
      serveFile(
        app,
        '/schema.graphql',
        () => `${printSchema(options.schema)}\n`,
      );
    serveReference(app);
    serveGuides(app);
    serveFrontPage(app, options.info, isServed);
  },
  { name: 'pages' },
);

/**
 * Swagger UI's files from @fastify/swagger-ui, because swagger-ui-dist has a
 * postinstall script.
 */
const swaggerUi = fileURLToPath(
  new URL(
    '.',
    import.meta.resolve('@fastify/swagger-ui/static/swagger-ui-bundle.js'),
  ),
);

/**
 * Serves `/docs`, the REST reference, where a user with a key can try every
 * operation. It loads no external files.
 */
function serveReference(app: FastifyInstance): void {
  const policy = policyOf(
    "script-src 'self'",
    "style-src 'self'",
    // Swagger UI's style sheet embeds its icons.
    "img-src 'self' data:",
    "connect-src 'self'",
  );
  servePage(app, '/docs', () => asset('reference.html'), policy);
  // Also the files that the other pages share.
  serveFiles(app, '/docs/static', join(root, 'web/assets/static'), policy);
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
    serveFile(app, `/docs/static/${name}`, () =>
      readFileSync(swaggerUi + name),
    );
  }
}

/**
 * The build renders README.md and `docs/` into this folder (tools/guide.mjs).
 */
const guides = join(root, 'dist/guide');

/** Serves the guides at `/guide`, and each page below it. */
function serveGuides(app: FastifyInstance): void {
  if (!existsSync(guides)) {
    app.log.warn(
      'the guides are not served, because dist/guide is missing: run `npm ci`, and build again',
    );
    return;
  }
  const policy = policyOf(
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
  );
  for (const file of readdirSync(guides).filter((name) =>
    name.endsWith('.html'),
  )) {
    const path =
      file === 'index.html' ? '/guide' : `/guide/${basename(file, '.html')}`;
    servePage(app, path, () => readFileSync(join(guides, file)), policy);
  }
  const index = () => readFileSync(join(guides, 'search-index.js'));
  serveFile(app, '/guide/search-index.js', index);
}

/**
 * A link on the front page: its member name in JSON, its path, the title and
 * the text on the page.
 */
type PageLink = [name: string, path: string, title: string, text: string];

/** By the headings on the page. */
const links: Record<string, PageLink[]> = {
  Guides: [
    ['guides', '/guide', 'Guides', 'How to use it, operate it and change it.'],
    [
      'errors',
      '/guide/errors',
      'Errors',
      'Every error code: what it means, and what to do.',
    ],
  ],
  REST: [
    [
      'reference',
      '/docs',
      'Reference',
      'Every operation, to be tried there with your key.',
    ],
    [
      'openapi',
      '/v1/openapi.json',
      'OpenAPI',
      'The contract, for generators of clients.',
    ],
  ],
  GraphQL: [
    [
      'sandbox',
      '/graphql',
      'Apollo Sandbox',
      'Explore and try it. The page loads from Apollo: it needs the internet.',
    ],
    [
      'explorer',
      '/graphiql',
      'GraphiQL',
      'Explore and try it without the internet: all of it is served here.',
    ],
    [
      'schema',
      '/schema.graphql',
      'Schema',
      'The contract, in the schema definition language.',
    ],
  ],
  Health: [
    ['liveness', '/livez', 'Liveness', 'The process runs.'],
    [
      'readiness',
      '/readyz',
      'Readiness',
      'It can serve: the database answers.',
    ],
  ],
};

/**
 * Serves `/`, with links to the pages and documents: HTML if the client prefers
 * it, else JSON (RFC 9110 section 12.4.1).
 */
function serveFrontPage(
  app: FastifyInstance,
  info: PagesOptions['info'],
  isServed: (path: string) => boolean,
): void {
  const about = {
    name: info.title,
    version: releasedVersion(),
    description: info.description,
  };
  const served = Object.entries(links)
    .map(([group, all]): [string, PageLink[]] => [
      group,
      all.filter(([, path]) => isServed(path)),
    ])
    .filter(([, shown]) => shown.length > 0);
  const style = styleOf('front-page.css');
  const policy = policyOf(
    "script-src 'self'",
    style.source,
    "img-src 'self'",
    "connect-src 'self'",
  );
  const page = fill(asset('front-page.html').toString(), {
    ...Object.fromEntries(
      Object.entries(about).map(([name, value]) => [name, escaped(value)]),
    ),
    style: style.element,
    sections: served.map(sectionOf).join('\n'),
  });
  const sendPage = keep(
    (address) => fill(page, { address: escaped(address), bar: app.bar('/') }),
    { ...pageHeaders(policy), 'content-type': typeOf('.html') },
  );
  const sendLinks = keep(
    (address) => {
      const addresses = served.flatMap(([, shown]) =>
        shown.map(([name, path]) => [name, address + path]),
      );
      const links = Object.fromEntries(addresses);
      return JSON.stringify({ ...about, links });
    },
    { 'content-type': typeOf('.json') },
  );
  const options = { ...publicRoute, compress: compressedOnce };
  app.get('/', options, async (request, reply) => {
    varyBy(reply, 'Accept');
    const send = prefersHtml(request) ? sendPage : sendLinks;
    return send(request, reply);
  });
}

/** The pages of the bar, by their paths. */
const barLinks = {
  '/': 'Animals',
  '/guide': 'Guides',
  '/docs': 'REST',
  '/graphiql': 'GraphiQL',
  '/graphql': 'Sandbox',
};

function barOf(isServed: (path: string) => boolean): FastifyInstance['bar'] {
  const icon = asset('static/icon.svg').toString();
  return (current, top = current.lastIndexOf('/') > 0 ? '../' : './') => {
    const [section] = /^\/[^/]*/.exec(current) ?? [];
    const items = Object.entries(barLinks)
      .filter(([path]) => isServed(path))
      .map(([path, title]) => {
        const mark = path === section ? ' aria-current="true"' : '';
        return `<a href="${top}${path.slice(1)}"${mark}>${title}</a>`;
      });
    return `<a class="home" href="${top}">${icon} Animal Store</a>
<nav aria-label="Pages">${items.join('\n')}</nav>`;
  };
}

/**
 * The page that a browser gets in place of an Error body. Without a key it is
 * the same for every address, so it tells nothing about which of them exist.
 */
function errorPage(bar: FastifyInstance['bar']): FastifyInstance['errorPage'] {
  const style = styleOf('front-page.css');
  const policy = policyOf(style.source);
  const html = fill(asset('error-page.html').toString(), {
    style: style.element,
  });
  return ({ status, message }, request, reply) => {
    const shown =
      status === 401
        ? {
            title: 'An API key is needed',
            message:
              'Without a valid API key, nothing is shown at this address.',
          }
        : { title: 'Not found', message: escaped(message) };
    const home = escaped(origin(request));
    return sendHtml(reply, {
      html: fill(html, { ...shown, home, bar: bar('', `${home}/`) }),
      policy,
    });
  };
}

function sectionOf([group, shown]: [string, PageLink[]]): string {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${shown.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf([, path, title, text]: PageLink): string {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
