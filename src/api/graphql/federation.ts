import {
  GraphQLError,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isObjectType,
  Kind,
  printSchema,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import type { MiddlewareFn } from 'type-graphql';
import type { FieldCost } from '../../../packages/graphql-limits/src/cost.ts';
import type { Deadline } from '../../deadline.ts';
import { StoreError } from '../../errors.ts';
import { isRecord } from '../../storage/input/check.ts';
import { type Int64, int64FromText } from '../../storage/input/int64.ts';
import { pageLimit } from '../../storage/input/page.ts';
import type { GraphQLContext } from './over-http.ts';

/** Finds an item by its id, for each GraphQL type to which other subgraphs may refer. The names are those of the types. */
export type References = Record<string, (id: Int64 | undefined, deadline: Deadline) => Promise<object | null>>;

type Representation = Record<string, unknown> & { __typename: string };

/**
 * Adds what makes a schema a subgraph (Apollo Federation subgraph specification, version 2.0): `_service` with its SDL, and
 * `_entities`, which finds the items to which other subgraphs refer by `id`.
 *
 * @param meter charges a root field
 * @param introspection whether clients may read the schema; the SDL is part of it
 * @throws Error for a type that does not exist
 */
export function federated(
  schema: GraphQLSchema,
  references: References,
  meter: MiddlewareFn<GraphQLContext>,
  introspection: boolean,
): GraphQLSchema {
  const { query, types, ...others } = schema.toConfig();
  if (!query) throw new Error('A subgraph needs queries.');
  const entities = Object.keys(references).map((name) => {
    const type = schema.getType(name);
    if (isObjectType(type) && type.getFields().id) return type;
    throw new Error(`A module finds ${name} by id (references), and there is no GraphQL type of this name with an id.`);
  });
  const sdl = sdlOf(schema, Object.keys(references));
  const Service = new GraphQLObjectType({
    name: '_Service',
    fields: { sdl: { type: new GraphQLNonNull(GraphQLString) } },
  });
  const Entity = new GraphQLUnionType({
    name: '_Entity',
    types: entities,
    resolveType: ({ __typename }) => __typename,
  });
  const representations = { type: nonNullList(new GraphQLNonNull(Any)) };
  const { fields, ...root } = query.toConfig();
  const Query = new GraphQLObjectType<unknown, GraphQLContext>({
    ...root,
    fields: {
      ...fields,
      ...(introspection && { _service: { type: new GraphQLNonNull(Service), resolve: () => ({ sdl }) } }),
      ...(entities.length > 0 && {
        _entities: {
          type: nonNullList(Entity),
          args: { representations },
          extensions: { complexity: entitiesCost },
          resolve: (root, args, context, info) =>
            meter({ root, args, context, info }, () => entitiesOf(args.representations, references, context)),
        },
      }),
    },
  });
  return new GraphQLSchema({ ...others, query: Query, types: types.filter((type) => type !== query) });
}

function nonNullList<Type extends GraphQLUnionType | GraphQLNonNull<GraphQLScalarType>>(type: Type) {
  return new GraphQLNonNull(new GraphQLList(type));
}

/** The lookups of each request, of which one is in progress. */
const lookups = new WeakMap<GraphQLContext, Promise<unknown>>();

/** Finds a page at a time, also of several fields, because other requests wait in the same queue. */
function entitiesOf(representations: Representation[], references: References, context: GraphQLContext) {
  const find = () => findAll(representations, references, context);
  const found = lookups.get(context)?.then(find) ?? find();
  lookups.set(context, found);
  return found;
}

async function findAll(representations: Representation[], references: References, context: GraphQLContext) {
  const found: Array<object | null> = [];
  while (found.length < representations.length) {
    const page = representations.slice(found.length, found.length + pageLimit.max);
    found.push(...(await Promise.all(page.map((one) => entityOf(one, references, context)))));
  }
  return found;
}

/** In messages, because aliases repeat a name that is as long as a body. */
const longestName = 100;

/** @returns an error for one representation, so that the others are answered */
async function entityOf(
  { __typename: name, id }: Representation,
  references: References,
  { call }: GraphQLContext,
): Promise<object | null> {
  try {
    const find = Object.hasOwn(references, name) ? references[name] : undefined;
    if (!find) throw new StoreError('BAD_USER_INPUT', `No entity is named ${name.slice(0, longestName)}.`);
    if (!isId(id)) throw new StoreError('BAD_USER_INPUT', 'A representation needs `id`: a string, or an integer.');
    const found = await find(int64FromText(`${id}`), call);
    return found && Object.create(found, { __typename: { value: name } });
  } catch (error) {
    return error as Error;
  }
}

const isId = (id: unknown) => typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);

/** One, plus one and the cost of its fields for every representation. */
const entitiesCost: FieldCost = ({ args: { representations }, childComplexity }) =>
  1 + (Array.isArray(representations) ? representations.length : 1) * (1 + childComplexity);

const Any = new GraphQLScalarType<Representation, unknown>({
  name: '_Any',
  parseValue: representationOf,
  parseLiteral: (node, variables) => {
    if (node.kind !== Kind.OBJECT) return representationOf(undefined);
    return representationOf(
      Object.fromEntries(node.fields.map(({ name, value }) => [name.value, exactly(value, variables)])),
    );
  },
});

/** The digits of an integer. As a JavaScript number it would lose some. */
function exactly(node: ValueNode, variables: Parameters<typeof valueFromASTUntyped>[1]): unknown {
  return node.kind === Kind.INT ? node.value : valueFromASTUntyped(node, variables);
}

function representationOf(value: unknown): Representation {
  if (isRecord(value) && typeof value.__typename === 'string') return value as Representation;
  throw new GraphQLError('A representation must be an object with `__typename` and the fields of the key.');
}

/** The schema with federation's directives. Every subgraph with connections has the same `PageInfo`. */
function sdlOf(schema: GraphQLSchema, entities: string[]): string {
  const link = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])';
  const types = printSchema(schema).replace(/^type (\w+)(?: implements .+)?(?= \{$)/gm, (type, name: string) => {
    if (entities.includes(name)) return `${type} @key(fields: "id")`;
    return name === 'PageInfo' ? `${type} @shareable` : type;
  });
  return `${link}\n\n${types}\n`;
}
