import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { contentTag } from '../http/headers.ts';
import { asset, open, policyOf, servePage } from './html.ts';

/** Swagger UI's files from @fastify/swagger-ui, because swagger-ui-dist has a postinstall script. */
const swaggerUi = fileURLToPath(new URL('.', import.meta.resolve('@fastify/swagger-ui/static/swagger-ui-bundle.js')));

const policy = policyOf(
  "script-src 'self'",
  "style-src 'self'",
  // Swagger UI's style sheet embeds its icons.
  "img-src 'self' data:",
  "connect-src 'self'",
);

/** Serves `/docs`, the REST reference, where a user with a key can try every operation. It loads no external files. */
export async function reference(app: FastifyInstance): Promise<void> {
  servePage(app, '/docs', { html: asset('reference.html').toString(), policy });
  for (const [name, content] of Object.entries(files())) serveFile(app, name, content);
}

/** Serves the files of the reference, and what the other pages share. */
const files = (): Record<string, Buffer> => ({
  'swagger-ui-bundle.js': readFileSync(`${swaggerUi}swagger-ui-bundle.js`),
  'swagger-ui.css': readFileSync(`${swaggerUi}swagger-ui.css`),
  'reference.js': asset('reference.js'),
  'reference.css': asset('reference.css'),
  'theme.css': asset('theme.css'),
  'guide.css': asset('guide.css'),
  'front-page.js': asset('front-page.js'),
  'key.js': asset('key.js'),
  'icon.svg': asset('icon.svg'),
});

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

function serveFile(app: FastifyInstance, name: string, content: Buffer): void {
  const tag = contentTag(content);
  const type = `${types[extname(name)]}`;
  app.get(`/docs/static/${name}`, open, async (_request, reply) => {
    reply.contentTag = tag;
    return reply.type(type).send(content);
  });
}
