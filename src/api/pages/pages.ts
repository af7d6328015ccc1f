import type { FastifyInstance } from 'fastify';
import { type GraphQLSchema, printSchema } from 'graphql';
import { type FrontPageOptions, frontPage } from './front-page.ts';
import { asset, open } from './page.ts';
import { reference } from './reference.ts';

export interface PagesOptions extends FrontPageOptions {
  schema: GraphQLSchema;
  /** Whether clients may read the schema. */
  introspection: boolean;
}

/** The pages and documents that need no key, and the files that browsers and crawlers request from every host. */
export async function pages(app: FastifyInstance, options: PagesOptions): Promise<void> {
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
  await app.register(frontPage, options);
}
