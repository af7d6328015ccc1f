import type { FieldCost } from '@animal-store/graphql-limits/cost';
import {
  extendSchema,
  GraphQLError,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
  parse,
  printSchema,
} from 'graphql';
import type { GraphQLContext } from '../../api/graphql/context.ts';
import type { References } from '../../api/graphql/scopes.ts';
import { AnyJSON } from '../../api/graphql/types.ts';
import { badInput } from '../../errors.ts';
import { int64FromText } from '../../validation/int64.ts';
import { pageLimit } from '../../validation/page-size.ts';

type Representation = Record<string, unknown> & { __typename: string };

/**
 * Adds what makes a schema a subgraph (Apollo Federation subgraph
 * specification, version 2.0): `_service` with its SDL, and `_entities`, which
 * finds the items to which other subgraphs refer by `id`.
 *
 * @param shared the schema for the composition
 * @param introspection whether clients may read the schema; its SDL is part of
 *   it
 * @throws Error for a type that does not exist
 */
export function subgraph(
  schema: GraphQLSchema,
  shared: GraphQLSchema,
  references: References,
  introspection: boolean,
) {
  const names = Object.keys(references);
  for (const name of names) {
    const type = schema.getType(name);
    if (isObjectType(type) && type.getFields().id) continue;
    throw new Error(
      `References name ${name}, and there is no GraphQL type of this name with an id.`,
    );
  }
  const root = schema.getQueryType()?.name;
  const service = `type _Service { sdl: String! } extend type ${root} { _service: _Service! }`;
  const entities = `scalar _Any
    union _Entity = ${names.join(' | ')}
    extend type ${root} { _entities(representations: [_Any!]!): [_Entity]! }`;
  const added: string[] = [];
  if (introspection) added.push(service);
  if (names.length > 0) added.push(entities);
  if (added.length === 0) return schema;
  const extended = extendSchema(schema, parse(added.join('\n')));
  const { _service, _entities } = extended.getQueryType()?.getFields() ?? {};
  const sdl = sdlOf(shared, names);
  if (_service) _service.resolve = () => ({ sdl });
  if (!_entities) return extended;
  Object.assign(_entities, {
    extensions: { complexity: entitiesCost },
    resolve: entitiesResolver(references),
  });
  Object.assign(extended.getType('_Entity') as object, {
    resolveType: ({ __typename }: Representation) => __typename,
  });
  Object.assign(extended.getType('_Any') as object, {
    parseValue: representationOf,
    parseLiteral: (...literal: Parameters<typeof AnyJSON.parseLiteral>) =>
      representationOf(AnyJSON.parseLiteral(...literal)),
  });
  return extended;
}

/** In messages, because aliases repeat a name that is as long as a body. */
const shownName = 100;

function entitiesResolver(
  references: References,
): GraphQLFieldResolver<unknown, GraphQLContext> {
  const finders = new Map(Object.entries(references));

  async function entityOf(
    { __typename: name, id }: Representation,
    { call }: GraphQLContext,
  ): Promise<object | null> {
    const find = finders.get(name);
    if (!find)
      throw badInput(`No entity is named ${name.slice(0, shownName)}.`);
    if (!isId(id))
      throw badInput('A representation needs `id`: a string, or an integer.');
    const found = await find(int64FromText(`${id}`), call);
    return found && Object.create(found, { __typename: { value: name } });
  }

  /**
   * Looks each item up once. The error for a representation takes its place, so
   * that the others are answered.
   */
  function findAll(
    representations: Representation[],
    context: GraphQLContext,
  ): Promise<unknown[]> {
    const found = new Map<string, Promise<unknown>>();
    const places = representations.map((one) => {
      const { __typename, id } = one;
      const key = JSON.stringify([__typename, isId(id) && `${id}`]);
      const entity =
        found.get(key) ?? entityOf(one, context).catch((error) => error);
      found.set(key, entity);
      return entity;
    });
    return Promise.all(places);
  }

  /** The look-ups of each request, of which one is in progress. */
  const lookups = new WeakMap<GraphQLContext, Promise<unknown>>();
  return (_root, { representations }, context) => {
    // A page at a time, also of several fields, because other requests wait in
    // the same queue.
    const find = () => findAll(representations, context);
    const found = lookups.get(context)?.then(find) ?? find();
    lookups.set(context, found);
    return found;
  };
}

const isId = (id: unknown) =>
  typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);

/**
 * One, plus one and the cost of its fields for every representation. It throws
 * for too many, before execution.
 */
const entitiesCost: FieldCost = ({ args, childComplexity }) => {
  const { representations } = args;
  const count = Array.isArray(representations) ? representations.length : 1;
  if (count <= pageLimit.max) return 1 + count * (1 + childComplexity);
  throw badInput(
    `_entities takes at most ${pageLimit.max} representations at a time: ${count}.`,
  );
};

function representationOf(value: unknown) {
  const given = value as Representation | null | undefined;
  if (typeof given?.__typename === 'string') return given;
  throw new GraphQLError(
    'A representation must be an object with `__typename` and the fields of the key.',
  );
}

/** The schema with federation's directives. */
function sdlOf(schema: GraphQLSchema, entities: readonly string[]) {
  const link =
    'extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])';
  const types = printSchema(schema).replace(
    /^type (\w+)(?: implements .+)?(?= \{$)/gm,
    (type, name: string) => {
      if (entities.includes(name)) return `${type} @key(fields: "id")`;
      // Every subgraph may define it alike.
      if (name === 'PageInfo') return `${type} @shareable`;
      return type;
    },
  );
  return `${link}\n\n${types}\n`;
}
