import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';

const text = (description: string) => ({ type: 'string', description });

const headers = {
  type: 'object',
  properties: {
    'If-None-Match': text(
      'RFC 9110 section 13.1.2: entity tags of earlier answers, or `*`; 304 when one of them is still right.',
    ),
  },
};

const ofBoth = {
  ETag: text('RFC 9110 section 8.8.3: a strong entity tag; each content coding has its own.'),
  'Cache-Control': text('`private, no-cache`: kept by the client alone, and asked for again each time.'),
  Vary: text('RFC 9110 section 12.5.5: `Accept-Encoding`, and `Origin` where frontends of other origins are let in.'),
};
const ofContent = { 'Content-Encoding': text('`zstd`, `br` or `gzip`, as `Accept-Encoding` prefers; else absent.') };

/** Documents what `representations` does for every operation that reads. Register it before the routes. */
export const documentedRevalidation = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.addHook('onRoute', (route) => {
      const { method, schema } = route;
      const responses = (schema?.response ?? {}) as Record<string, { headers?: object }>;
      const read = responses[200];
      if (method !== 'GET' || !read) return;
      const unchanged = {
        description: 'What the client has is still right. No body; the headers are those of 200.',
        type: 'null',
        headers: { ...ofBoth, ...read.headers },
      };
      const response = {
        ...responses,
        200: { ...read, headers: { ...ofBoth, ...ofContent, ...read.headers } },
        304: unchanged,
      };
      route.schema = { ...schema, headers, response };
    });
  },
  { name: 'documented-revalidation', dependencies: ['documented-failures'] },
);
