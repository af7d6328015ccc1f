import { assertCosts } from '@animal-store/graphql-limits/cost';
import type { FastifyInstance } from 'fastify';
import { type GraphQLSchema, printSchema } from 'graphql';
import { buildSchema, type NonEmptyArray, type PubSub } from 'type-graphql';
import { reportFault, reportThrown } from '../../errors.ts';
import { told } from '../../records/live-items.ts';
import { serveDocument } from '../http/documents.ts';
import { lastEventIdOf } from '../subscriptions/subscriptions.ts';
import type { GraphQLContext } from './context.ts';
import type { GraphQLParts } from './handler.ts';
import { guardRoots } from './pipeline.ts';
import {
  guardedReferences,
  resolvedFields,
  type SchemaPart,
  setScopes,
} from './scopes.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The served schema, of all modules. */
    graphqlSchema: GraphQLSchema;
  }
}

const descriptions: Record<string, string> = {
  Query: 'What can be read. Every operation needs an API key.',
  Mutation: 'What can be changed. It needs an API key with the scope `write`.',
  Subscription:
    'Changes as they happen: send `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.',
};

/**
 * Rejects fields with the same name, of which type-graphql would serve the
 * last.
 */
function assertDistinctFields(resolvers: object[]) {
  const fields = resolvedFields(resolvers).map(
    ({ type, name }) => `${type}.${name}`,
  );
  const repeated = fields.filter((name, at) => fields.indexOf(name) < at);
  for (const name of repeated)
    reportFault(`Two resolvers define the GraphQL field ${name}.`);
}

/** Rejects what a reader of the contract would not understand. */
function assertDescribed(schema: GraphQLSchema) {
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue;
    const fields = 'getFields' in type ? Object.values(type.getFields()) : [];
    if (!type.description) reportFault(`${type.name} needs a description.`);
    for (const { name, description } of fields)
      if (!description)
        reportFault(`${type.name}.${name} needs a description.`);
  }
}

/**
 * Builds the schema from the resolvers of all modules.
 *
 * @param extend adds what features serve
 * @throws Error when a field has no declared cost, or a name is used twice
 */
export async function createSchema(
  parts: SchemaPart[],
  extend: GraphQLParts['schema'],
) {
  let schema = await schemaOf(parts);
  if (extend) {
    const shared = parts.filter(({ isLocal }) => !isLocal);
    const references = guardedReferences(shared);
    schema = extend(schema, await schemaOf(parts, shared), references);
  }
  reportThrown(() => assertCosts(schema));
  guardRoots(schema);
  makeLive(schema);
  return schema;
}

/** @param served those whose fields it has */
async function schemaOf(parts: SchemaPart[], served = parts) {
  const all = served.flatMap(({ resolvers }) => resolvers);
  const instances = new Map<unknown, object>(
    all.map((resolver) => [resolver.constructor, resolver]),
  );
  if (instances.size === 0)
    throw new Error('No module has resolvers: GraphQL needs a query.');
  const built = await buildSchema({
    resolvers: [...instances.keys()] as NonEmptyArray<() => void>,
    container: instances,
    validate: false,
    // Apollo Server checks the schema.
    skipCheck: true,
    // Required, and never used, because followers read the list (`makeLive`).
    pubSub: {} as PubSub,
  });
  assertDistinctFields(all);
  // type-graphql has no option for these descriptions.
  for (const [name, description] of Object.entries(descriptions)) {
    const type = built.getType(name);
    if (type) type.description = description;
  }
  assertDescribed(built);
  setScopes(built, parts);
  return built;
}

/**
 * Sets `subscribe` of live fields, which starts after `Last-Event-ID`, if
 * present. Each item is a value of its field.
 */
function makeLive(schema: GraphQLSchema) {
  for (const field of Object.values(
    schema.getSubscriptionType()?.getFields() ?? {},
  )) {
    const { resolve } = field;
    field.subscribe = (root, args, context: GraphQLContext, info) => {
      const last = lastEventIdOf(context.request);
      // A text, as a client's argument.
      const after = last === undefined ? args.after : `${last}`;
      return resolve?.(root, { ...args, after }, context, info);
    };
    field.resolve = (item) => item[told] ?? item;
  }
}

/** Serves the contract, in the schema definition language. */
export function serveSchema(app: FastifyInstance, schema: GraphQLSchema) {
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  const read = () => `${printSchema(schema)}\n`;
  serveDocument(app, '/schema.graphql', read, headers);
}
