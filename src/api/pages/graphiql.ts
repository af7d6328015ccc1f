import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { pageHeaders } from '../http/headers.ts';
import type { Example } from './example.ts';
import { asset, dataElement, fill, policyOf, root, servePage } from './page.ts';

export interface GraphiQLOptions {
  examples: Example[];
}

/** The build bundles `explorer/` into a folder here that is named after its content (explorer/bundle.ts). */
const bundles = join(root, 'dist/graphiql');

const policy = policyOf(
  "script-src 'self'",
  "worker-src 'self'",
  // Monaco sets styles from its script, and its style sheet has fonts and pictures in it.
  "style-src 'self' 'unsafe-inline'",
  'font-src data:',
  "img-src 'self' data:",
  "connect-src 'self'",
);

/** GraphiQL at `/graphiql`. Everything that it loads is served here, without a key: its user has one. */
export async function graphiQL(app: FastifyInstance, { examples }: GraphiQLOptions): Promise<void> {
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
  servePage(app, '/graphiql', { html: fill(asset('graphiql.html').toString(), places), policy });
  await app.register(fastifyStatic, {
    root: join(bundles, version),
    prefix: `/graphiql/${version}/`,
    immutable: true,
    maxAge: '1y',
    index: false,
    preCompressed: true,
    // Workers have the policy of their own script.
    setHeaders: (reply) => reply.headers(pageHeaders(policy)),
  });
}
