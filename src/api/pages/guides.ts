import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { pageHeaders, policyOf, root, servePage } from './html.ts';

/** The build renders README.md and `docs/` into this folder (bin/guide.mjs). */
const folder = join(root, 'dist/guide');
const policy = policyOf("style-src 'self'", "img-src 'self'");

/** Serves the guides at `/guide`, and each page below it, without a key and without scripts. */
export async function guides(app: FastifyInstance): Promise<void> {
  if (!existsSync(folder)) {
    app.log.warn('the guides are not served, because dist/guide is missing: run `npm ci`, and build again');
    return;
  }
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, public: true };
  });
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.html'))) {
    const path = file === 'index.html' ? '/guide' : `/guide/${basename(file, '.html')}`;
    servePage(app, path, { html: readFileSync(join(folder, file), 'utf8'), policy });
  }
  await app.register(fastifyStatic, {
    root: join(folder, 'images'),
    prefix: '/guide/images/',
    // One route per file: an address without a file needs a key, as any other.
    wildcard: false,
    index: false,
    setHeaders: (reply) => reply.headers(pageHeaders(policy)),
  });
}
