import 'reflect-metadata';
import { inspect } from 'node:util';
import { nearestDouble, parseExactJson } from '@animal-store/exact-json';
import type { Values } from '@animal-store/graphql-limits/cost';
import {
  GraphQLError,
  GraphQLFloat,
  GraphQLID,
  GraphQLScalarType,
  Kind,
  print,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import {
  type ClassType,
  Extensions,
  Field,
  Int,
  ObjectType,
  Root,
  Subscription,
} from 'type-graphql';
import { type TObject, type TSchema, Type } from 'typebox';
import { badInput } from '../../errors.ts';
import { once } from '../../once.ts';
import { type Int64, int64FromText } from '../../validation/int64.ts';
import { kinds } from '../../validation/kinds.ts';
import {
  maxExactTotal,
  type Page,
  type Total,
  totalCost,
} from '../../validation/page.ts';
import { pageLimit } from '../../validation/page-size.ts';
import { int32, type MemberSchema } from '../../validation/rules.ts';
import { memberOf } from '../../validation/schemas.ts';
import { type Input, validator } from '../../validation/validator.ts';

// What modules share: ids, lists as arrays and as connections, and decorators
// of resolver methods.

/**
 * GraphQL's `ID`, extended to accept and return `bigint`, which graphql-js's
 * own rejects in both directions. On the wire it is unchanged: a string in
 * responses, a string or an integer in requests (GraphQL specification, section
 * 3.5.5).
 */
export const ID = new GraphQLScalarType({
  ...GraphQLID.toConfig(),
  serialize: String,
  parseValue: (value) => {
    if (typeof value === 'string') return value;
    // A number beyond 2^53 has lost digits. The service's JSON parser returns a
    // bigint instead.
    if (typeof value === 'bigint' || Number.isSafeInteger(value))
      return `${value}`;
    throw notAnId(inspect(value));
  },
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return node.value;
    // As a JSON number, -0 is 0 as well.
    if (node.kind === Kind.INT) return node.value.replace(/^-0$/, '0');
    throw notAnId(print(node), node);
  },
});

function notAnId(found: string, nodes?: ValueNode) {
  const message = `ID cannot represent value: ${found}. It must be a string, or an integer in plain digits.`;
  return new GraphQLError(message, { nodes });
}

/**
 * GraphQL's `Float`, extended to accept what the service's JSON parser makes of
 * numbers that a double would change.
 */
export const Float = new GraphQLScalarType({
  ...GraphQLFloat.toConfig(),
  parseValue: floatFrom,
  parseLiteral: (node, variables) => floatFrom(jsonIn(node, variables)),
});

function floatFrom(value: unknown) {
  return GraphQLFloat.parseValue(nearestDouble(value));
}

export const AnyJSON = new GraphQLScalarType({
  name: 'JSON',
  description: 'Any JSON. Its integers are exact to the last digit.',
  parseValue: (value) => value,
  parseLiteral: jsonIn,
});

/** The value of a literal, with all digits of its numbers. */
function jsonIn(node: ValueNode, variables?: Values | null): unknown {
  const within = (one: ValueNode) => jsonIn(one, variables);
  if (node.kind === Kind.LIST) return node.values.map(within);
  if (node.kind === Kind.INT || node.kind === Kind.FLOAT)
    return parseExactJson(Buffer.from(node.value));
  if (node.kind !== Kind.OBJECT) return valueFromASTUntyped(node, variables);
  const members = node.fields.map(({ name, value }) => [
    name.value,
    within(value),
  ]);
  return Object.fromEntries(members);
}

@ObjectType({
  description: 'Where a page of a connection lies.',
  simpleResolvers: true,
})
class PageInfo {
  @Field(() => Boolean, { description: 'There are more after this page.' })
  readonly hasNextPage: unknown;

  @Field(() => Boolean, { description: 'There are more before this page.' })
  hasPreviousPage(@Root() { hasPrevious = false }: Page<never>) {
    return typeof hasPrevious === 'function' ? hasPrevious() : hasPrevious;
  }

  @Field(() => String, {
    nullable: true,
    description: 'The cursor of the first one here; `before` ends there.',
  })
  readonly startCursor: unknown;

  @Field(() => String, {
    nullable: true,
    description: 'The cursor of the last one here; `after` continues from it.',
  })
  readonly endCursor: unknown;
}

/**
 * Creates the types of a connection from the type of its nodes.
 *
 * @param name of that type
 * @param nouns for the nodes, in the plural
 * @example const ToyConnection = connectionOf(ToyType, 'Toy', 'toys');
 */
export function connectionOf(
  Node: ClassType,
  name: string,
  nouns: string,
): ClassType {
  @ObjectType(`${name}Edge`, {
    description: `One of the ${nouns}, and its place in the list.`,
    simpleResolvers: true,
  })
  class Edge {
    @Field(() => String, { description: 'Opaque; `after` continues from it.' })
    readonly cursor: unknown;

    @Field(() => Node, { description: 'The one at this place.' })
    readonly node: unknown;
  }

  @ObjectType(`${name}Connection`, {
    description: `A page of the list of ${nouns}.`,
    simpleResolvers: true,
  })
  class PageOfNodes {
    @Field(() => [Edge], {
      description: `The ${nouns}, in the order of the list.`,
    })
    readonly edges: unknown;

    @Field(() => [Node], {
      description: 'The same without cursors.',
    })
    readonly nodes: unknown;

    @Field(() => PageInfo, { description: 'Where this page lies.' })
    readonly pageInfo: unknown;

    @Field(() => Int, {
      description: `How many ${nouns} there are on all pages: exact up to ${maxExactTotal}, an estimate beyond.`,
      complexity: totalCost,
    })
    async totalCount(@Root() { total }: ReturnType<typeof toConnection>) {
      return Math.min((await total()).count, int32.maximum);
    }

    @Field(() => Boolean, {
      description: '`totalCount` is not an estimate.',
      complexity: totalCost,
    })
    async isTotalCountExact(
      @Root() { total }: ReturnType<typeof toConnection>,
    ) {
      return (await total()).isExact;
    }
  }

  return PageOfNodes;
}

/**
 * The cursors are the page's, or the ids, like `after` in other lists.
 *
 * @param count called once if the client asks for the total
 * @example toConnection(await toys.list(query, call), () => toys.count(query, call))
 */
export function toConnection(
  page: Page<{ id: Int64 }>,
  count: () => Promise<Total>,
) {
  const { items, hasNext, hasPrevious } = page;
  const { cursors = items.map(({ id }) => `${id}`) } = page;
  const edges = items.map((node, at) => ({ cursor: `${cursors[at]}`, node }));
  const pageInfo = {
    hasNextPage: hasNext,
    hasPrevious,
    startCursor: edges.at(0)?.cursor ?? null,
    endCursor: edges.at(-1)?.cursor ?? null,
  };
  return { edges, nodes: items, pageInfo, total: once(count) };
}

/**
 * Validates the arguments of a connection by the rules of the list, with
 * `first` or `last` for `limit`. Zero means a page without items (GraphQL Cursor
 * Connections Specification, "Pagination algorithm").
 */
export function connectionValidator<Schema extends TObject>(schema: Schema) {
  const { limit, after: id, before: _, ...others } = schema.properties;
  const { default: __, ...size } = limit as MemberSchema;
  const first = Type.Optional({ ...size, minimum: 0 });
  const members = { first, last: first, ...others };
  const check = validator(Type.Object(members as never), { isLenient: true });
  // The list itself reads the cursors of its other orders.
  const isId = memberOf(id as TSchema).kind === kinds.int64;
  const placeOf = (fault: string, cursor?: string | null) => {
    const place = isId ? int64FromText(cursor) : cursor;
    if (cursor != null && place === undefined)
      throw badInput(`${fault}, or the \`cursor\` of an edge.`);
    return place ?? undefined;
  };
  return ({ after, before, ...args }: Cursors): Input<Schema> => {
    const places = {
      after: placeOf(`after ${notCursor} an \`endCursor\``, after),
      before: placeOf(`before ${notCursor} a \`startCursor\``, before),
    };
    const { first, last, ...query } = check(args) as Values;
    const given = { first, last, ...places };
    for (const [one, other] of exclusive)
      if (given[one] !== undefined && given[other] !== undefined)
        throw badInput(`${one} and ${other} exclude each other.`);
    const limit = last ?? first ?? pageLimit.default;
    const fromEnd = last !== undefined || undefined;
    return { ...query, ...places, limit, fromEnd } as never;
  };
}

/** `last` gives those before a cursor. */
const exclusive = [
  ['first', 'last'],
  ['first', 'before'],
  ['last', 'after'],
] as const;

const notCursor = 'is not a cursor of this list: it must be';

interface Cursors {
  after?: string | null;
  before?: string | null;
}

/**
 * A mutation that accepts `Idempotency-Key` for its creations.
 *
 * @example @Mutation(() => ToyType, { description: '...' }) @Idempotent()
 */
export function Idempotent(): MethodDecorator {
  return Extensions({ isIdempotent: true });
}

/**
 * A field of `Subscription` whose events are the items of a list. The method
 * returns what `LiveList.subscribe` returns; `makeLive` makes it the field's
 * `subscribe`, because type-graphql's own has no access to the resolver's
 * instance.
 *
 * @example @Live(() => ToyType, { description: 'Every toy, each once.' })
 */
export function Live(type: () => object, options: { description: string }) {
  return Subscription(type as never, { ...options, topics: 'never used' });
}

/**
 * What type-graphql's decorators have declared: it exports no function to read
 * that.
 */
export function metadataOf(kind: string) {
  const storage = globalThis as unknown as {
    TypeGraphQLMetadataStorage: Record<string, Metadata[]>;
  };
  return storage.TypeGraphQLMetadataStorage[kind] ?? [];
}

/** What a type, a field or an enumeration of them has. */
interface Metadata {
  target: unknown;
  name: string;
  schemaName: string;
  enumObj: object;
  getObjectType?(): unknown;
  getType?(): unknown;
}
