import { assertCosts, costOf } from '@animal-store/graphql-limits/cost';
import { subgraph } from '@animal-store/graphql-subgraph';
import { defaultFieldResolver, type GraphQLObjectType, type GraphQLSchema } from 'graphql';
import { buildSchema, type MiddlewareFn, type NonEmptyArray } from 'type-graphql';
import { forbidden, hasScope } from '../../access/keys/bearer.ts';
import type { CallContext } from '../../call-context.ts';
import { StoreError } from '../../errors.ts';
import { type Int64, int64FromText } from '../../validation/int64.ts';
import { mostItems, pageLimit } from '../../validation/page.ts';
import { makeLive, noPubSub } from './decorators.ts';
import type { GraphQLContext } from './operation.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The served schema, of all modules. */
    graphqlSchema: GraphQLSchema;
  }
}

/**
 * Charges a root field its maximum cost before it runs, when a quota is configured. Operations with costly nested
 * fields are charged as a whole.
 */
const metered: MiddlewareFn<GraphQLContext> = ({ context, args, info }, next) => {
  const { meter } = context.request;
  const isRoot = info.path.prev === undefined;
  const field = !meter?.isReserved && isRoot && info.parentType.getFields()[info.fieldName];
  return meter && field ? meter.run(costOf(field, true, mostItems)({ args, childComplexity: 0 }), next) : next();
};

const descriptions: Record<string, string> = {
  Query: 'What can be read. Every operation needs an API key.',
  Mutation: 'What can be changed. It needs an API key with the scope `write`.',
  Subscription: 'Changes as they happen: send `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.',
};

/** Requires the scope `write` for mutations. */
function requireWrite(mutations: GraphQLObjectType | null | undefined): void {
  for (const field of Object.values(mutations?.getFields() ?? {})) {
    const { resolve = defaultFieldResolver } = field;
    field.resolve = (root, args, context: GraphQLContext, info) =>
      hasScope(context.request.caller, 'write')
        ? resolve(root, args, context, info)
        : Promise.reject(forbidden('write'));
  }
}

/** Rejects root fields with the same name, of which type-graphql would serve the last. @throws Error that names it */
function assertDistinctFields(resolvers: Map<unknown, object>): void {
  // type-graphql keeps the decorators' declarations here, and exports no function to read them.
  const { TypeGraphQLMetadataStorage: metadata } = globalThis as unknown as {
    TypeGraphQLMetadataStorage: Record<string, Array<{ target: unknown; schemaName: string }>>;
  };
  const kinds = { Query: 'queries', Mutation: 'mutations', Subscription: 'subscriptions' };
  const fields = Object.entries(kinds).flatMap(([type, kind]) => {
    const own = metadata[kind]?.filter(({ target }) => resolvers.has(target)) ?? [];
    return own.map(({ schemaName }) => `${type}.${schemaName}`);
  });
  const repeated = fields.find((name, at) => fields.indexOf(name) < at);
  if (repeated) throw new Error(`Two resolvers define the GraphQL field ${repeated}.`);
}

/**
 * Finds an item by its id, for each GraphQL type to which other subgraphs may refer. The names are those of the types.
 */
export type References = Record<string, (id: Int64 | undefined, call: CallContext) => Promise<object | null>>;

function federated(schema: GraphQLSchema, references: References, introspection: boolean): GraphQLSchema {
  const finders = Object.entries(references).map(([name, find]) => {
    return [name, (id: string, { call }: GraphQLContext) => find(int64FromText(id), call)] as const;
  });
  return subgraph<GraphQLContext>(schema, {
    references: Object.fromEntries(finders),
    shareable: ['PageInfo'],
    introspection,
    maxRepresentations: pageLimit.max,
    run: metered,
    refuse: (message) => new StoreError('BAD_USER_INPUT', message),
  });
}

export interface SchemaOptions {
  /** Whether callers have quotas. */
  hasQuota: boolean;
  /** Whether clients may read the schema. */
  introspection: boolean;
  /** What other subgraphs may refer to; undefined when the schema is no subgraph. */
  references?: References | undefined;
}

/**
 * Builds the schema from the resolvers of all modules.
 *
 * @throws Error when a field has no declared cost, or a name is used twice
 */
export async function createSchema(
  resolvers: object[],
  { hasQuota, references, introspection }: SchemaOptions,
): Promise<GraphQLSchema> {
  const instances = new Map<unknown, object>(resolvers.map((resolver) => [resolver.constructor, resolver]));
  assertDistinctFields(instances);
  const built = await buildSchema({
    resolvers: [...instances.keys()] as NonEmptyArray<() => void>,
    container: instances,
    globalMiddlewares: hasQuota ? [metered] : [],
    validate: false,
    pubSub: noPubSub,
  });
  makeLive(built);
  // type-graphql has no option for these descriptions.
  for (const [name, description] of Object.entries(descriptions)) {
    const type = built.getType(name);
    if (type) type.description = description;
  }
  const schema = references ? federated(built, references, introspection) : built;
  assertCosts(schema);
  requireWrite(schema.getMutationType());
  return schema;
}
