import type { FastifyInstance } from 'fastify';
import { asset } from './asset.ts';

/** An API is nothing for search engines. */
const robots = 'User-agent: *\nDisallow: /\n';

/** `/favicon.ico` and `/robots.txt`: what browsers and crawlers ask every host for. */
export async function smallFiles(app: FastifyInstance): Promise<void> {
  const favicon = asset('favicon.ico');
  const open = { schema: { hide: true }, config: { public: true } };
  const day = 'public, max-age=86400';
  app.get('/favicon.ico', open, async (_request, reply) =>
    reply.header('cache-control', day).type('image/vnd.microsoft.icon').send(favicon),
  );
  app.get('/robots.txt', open, async (_request, reply) =>
    reply.header('cache-control', day).type('text/plain; charset=utf-8').send(robots),
  );
}
