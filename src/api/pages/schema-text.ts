import type { FastifyInstance } from 'fastify';
import { type GraphQLSchema, printSchema } from 'graphql';

export interface SchemaTextOptions {
  schema: GraphQLSchema;
  /** Whether clients may read the schema at all. */
  introspection: boolean;
}

/** `/schema.graphql`: the schema in the schema definition language. Nothing is there when the schema is closed. */
export async function schemaText(app: FastifyInstance, { schema, introspection }: SchemaTextOptions): Promise<void> {
  if (!introspection) return;
  const text = `${printSchema(schema)}\n`;
  app.get('/schema.graphql', { schema: { hide: true }, config: { public: true } }, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send(text),
  );
}
