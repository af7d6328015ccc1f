import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { asset, dataElement, fill, hashOf, type Page, pageHeaders, policyOf, root, servePage } from './page.ts';

/** An operation to try in the explorers. */
export interface Example {
  /** What it does, in a few words. */
  title: string;
  /** One named operation. Its variables have names that no other example uses: Sandbox shows all in one document. */
  document: string;
  variables?: Record<string, unknown>;
}

/** The build copies `explorer/dist` to here: one folder, which is named after its content (explorer/bundle.ts). */
const bundles = join(root, 'dist/graphiql');

const graphiQLPolicy = policyOf(
  "script-src 'self'",
  "worker-src 'self'",
  // Monaco sets styles from its script, and its style sheet has fonts and pictures in it.
  "style-src 'self' 'unsafe-inline'",
  'font-src data:',
  "img-src 'self' data:",
  "connect-src 'self'",
);

/** GraphiQL at `/graphiql`. Everything that it loads is served here, without a key: its user has one. */
export async function graphiQL(app: FastifyInstance, { examples }: { examples: Example[] }): Promise<void> {
  const [version] = existsSync(bundles) ? readdirSync(bundles).filter((name) => !name.startsWith('.')) : [];
  if (version === undefined) {
    // A developer has run the compiler without the rest of the build.
    app.log.warn('GraphiQL is not served, because dist/graphiql is missing: remove dist, and build again');
    return;
  }
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, public: true };
  });
  const places = { files: `graphiql/${version}`, examples: dataElement('examples', examples) };
  servePage(app, '/graphiql', { html: fill(asset('graphiql.html').toString(), places), policy: graphiQLPolicy });
  await app.register(fastifyStatic, {
    root: join(bundles, version),
    prefix: `/graphiql/${version}/`,
    immutable: true,
    maxAge: '1y',
    index: false,
    preCompressed: true,
    // Workers have the policy of their own script.
    setHeaders: (reply) => reply.headers(pageHeaders(graphiQLPolicy)),
  });
}

/** Apollo's script, and the frame that it opens. */
const script = 'https://embeddable-sandbox.cdn.apollographql.com/v2/embeddable-sandbox.umd.production.min.js';
const frame = 'https://sandbox.embed.apollographql.com/';

/**
 * Apollo Sandbox for the endpoint at the page's own address, with an `Authorization` header to fill in. Only the notice
 * is loaded from here; without internet it offers GraphiQL.
 */
export function sandboxPage(examples: Example[]): Page {
  const style = `${asset('theme.css')}${asset('sandbox.css')}`;
  const start = asset('sandbox.js').toString();
  const options = {
    target: 'main',
    initialState: {
      document: examples.map(({ title, document }) => `# ${title}\n${document}`).join('\n'),
      variables: Object.assign({}, ...examples.map(({ variables }) => variables)),
      // Not `sharedHeaders`: users cannot edit those, and Sandbox introspects with them.
      headers: { Authorization: 'Bearer <API_KEY>' },
      pollForSchemaUpdates: false,
    },
    endpointIsEditable: false,
    runTelemetry: false,
    // Styles in attributes, which the policy forbids.
    allowDynamicStyles: false,
  };
  const places = {
    style: `<style>${style}</style>`,
    options: dataElement('options', options),
    script,
    start: `<script type="module">${start}</script>`,
  };
  return {
    html: fill(asset('sandbox.html').toString(), places),
    policy: policyOf(
      `script-src ${hashOf(start)} ${script}`,
      `style-src ${hashOf(style)}`,
      `frame-src ${frame}`,
      // The frame's requests are sent by this page.
      "connect-src 'self'",
      "img-src 'self'",
    ),
  };
}
