import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type {
  FastifyInstance,
  FastifyRequest,
  preHandlerHookHandler,
  RouteOptions,
} from 'fastify';
import { isRead, varyBy } from '../../api/http/negotiation.ts';
import { root } from '../../config/config.ts';
import {
  asset,
  dataElement,
  fill,
  type HtmlPage,
  hashOf,
  policyOf,
  styleOf,
} from './html.ts';
import { prefersHtml, type Site } from './site.ts';

/** One folder, named by the hash of its content (web/explorer/copy.js). */
const bundles = join(root, 'web/explorer/dist');

const graphiQLPolicy = policyOf(
  "script-src 'self'",
  // GraphiQL sets styles in its script, and its style sheet embeds images.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
);

/**
 * Serves GraphiQL at `/graphiql`, with all its files, without a key. Users
 * enter their key there.
 */
export function serveGraphiQL(site: Site) {
  const [version = ''] = readdirSync(bundles);
  const folder = `graphiql/${version}`;
  const page = () =>
    fill(asset('graphiql.html').toString(), {
      files: folder,
      theme: `<style>${asset('static/theme.css')}</style>`,
      examples: dataElement('examples', site.app.examples),
    });
  site.servePage('/graphiql', page, graphiQLPolicy);
  const headers = { 'cache-control': 'public, max-age=31536000, immutable' };
  const files = join(bundles, version);
  site.serveFiles(`/${folder}`, files, headers);
}

/** Apollo's script, and the frame that it opens. */
const script =
  'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';
const frame = 'https://sandbox.embed.apollographql.com/';

/** Serves Sandbox to browsers at the address of the GraphQL API. */
export function serveSandbox(site: Site) {
  const { app } = site;
  let page: HtmlPage | undefined;
  // A callback, because it runs for every GET of GraphQL.
  const send: preHandlerHookHandler = (request, reply, done) => {
    if (!isNavigation(request)) return done();
    varyBy(reply, 'Accept');
    page ??= sandboxPage(app.examples);
    site.sendPage(reply, page, site.bar('/graphql'));
  };
  app.addHook('onRoute', (route) => {
    if (route.url !== '/graphql' || route.method === 'POST') return;
    route.config = { ...route.config, public: orNavigation(route) };
    route.preHandler = send;
  });
}

/** Selects the public requests of a route, and navigations. */
function orNavigation({ config }: RouteOptions) {
  const isPublic = config?.public;
  return (request: FastifyRequest) =>
    isNavigation(request) ||
    (typeof isPublic === 'function' && isPublic(request));
}

/** True for a browser's navigation, which gets the page without a key. */
function isNavigation(request: FastifyRequest) {
  const { method, headers } = request;
  return isRead(method) && !headers.authorization && prefersHtml(request);
}

/**
 * Creates Apollo Sandbox for the endpoint at the page's address, with an
 * `Authorization` header to fill in. Sandbox itself is loaded from Apollo;
 * without internet, a notice links to GraphiQL.
 */
function sandboxPage(examples: FastifyInstance['examples']): HtmlPage {
  const style = styleOf('sandbox.css');
  const start = asset('sandbox.js').toString();
  const options = {
    target: 'main',
    initialState: {
      document: examples
        .map(({ title, document }) => `# ${title}\n${document}`)
        .join('\n'),
      variables: Object.assign(
        {},
        ...examples.map(({ variables }) => variables),
      ),
      // Not `sharedHeaders`, because users cannot edit those, and Sandbox
      // introspects with them.
      headers: { Authorization: 'Bearer <API_KEY>' },
      pollForSchemaUpdates: false,
    },
    endpointIsEditable: false,
    runTelemetry: false,
    // The policy forbids style attributes.
    allowDynamicStyles: false,
  };
  const places = {
    style: style.element,
    options: dataElement('options', options),
    script,
    start: `<script type="module">${start}</script>`,
  };
  return {
    html: fill(asset('sandbox.html').toString(), places),
    policy: policyOf(
      `script-src ${hashOf(start)} ${script}`,
      style.source,
      `frame-src ${frame}`,
      // This page sends the frame's requests.
      "connect-src 'self'",
      "img-src 'self'",
    ),
  };
}
