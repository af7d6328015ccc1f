import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { root } from '../../config/config.ts';
import {
  asset,
  dataElement,
  fill,
  type HtmlPage,
  hashOf,
  policyOf,
  serveFiles,
  servePage,
  styleOf,
} from './html.ts';

/** An operation to try in the explorers. */
export interface Example {
  /** A short description. */
  title: string;
  /**
   * One named operation. Its variable names are unique among all examples,
   * because Sandbox joins them in one document.
   */
  document: string;
  variables?: Record<string, unknown>;
}

/** One folder, named by the hash of its content (web/explorer/bundle.ts). */
const bundles = join(root, 'web/explorer/dist');

const graphiQLPolicy = policyOf(
  "script-src 'self'",
  "worker-src 'self'",
  // Monaco sets styles in its script, and its style sheet embeds fonts and
  // images.
  "style-src 'self' 'unsafe-inline'",
  'font-src data:',
  "img-src 'self' data:",
  "connect-src 'self'",
);

/**
 * Serves GraphiQL at `/graphiql`, with all its files, without a key. Users
 * enter their key there.
 */
export async function graphiQL(
  app: FastifyInstance,
  { examples }: { examples: Example[] },
): Promise<void> {
  const [version] = existsSync(bundles)
    ? readdirSync(bundles).filter((name) => !name.startsWith('.'))
    : [];
  if (version === undefined) {
    app.log.warn('GraphiQL is not served, because explorer/dist is missing');
    return;
  }
  const places = {
    files: `graphiql/${version}`,
    theme: `<style>${asset('static/theme.css')}</style>`,
    examples: dataElement('examples', examples),
  };
  servePage(
    app,
    '/graphiql',
    () => fill(asset('graphiql.html').toString(), places),
    graphiQLPolicy,
  );
  const headers = { 'cache-control': 'public, max-age=31536000, immutable' };
  serveFiles(
    app,
    `/graphiql/${version}`,
    join(bundles, version),
    graphiQLPolicy,
    headers,
  );
}

/** Apollo's script, and the frame that it opens. */
const script =
  'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';
const frame = 'https://sandbox.embed.apollographql.com/';

/**
 * Serves Apollo Sandbox for the endpoint at the page's address, with an
 * `Authorization` header to fill in. Sandbox itself is loaded from Apollo;
 * without internet, a notice links to GraphiQL.
 */
export function sandboxPage(examples: Example[]): HtmlPage {
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
