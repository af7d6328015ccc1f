import 'reflect-metadata';
import type { EntityMetadata } from '@mikro-orm/core';
import {
  type GraphQLNamedType,
  GraphQLScalarType,
  isObjectType,
} from 'graphql';
import {
  ArgsType,
  type ClassType,
  Extensions,
  Field,
  GraphQLISODateTime,
  InputType,
  Int,
  ObjectType,
  registerEnumType,
} from 'type-graphql';
import {
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from 'typebox';
import { reportFault } from '../../errors.ts';
import { kinds } from '../../validation/kinds.ts';
import { pageLimit } from '../../validation/page-size.ts';
import type { Kind, MemberSchema } from '../../validation/rules.ts';
import {
  int64Schema,
  type Member,
  mapMembers,
  memberOf,
  textSchema,
} from '../../validation/schemas.ts';
import { AnyJSON, Float, ID, metadataOf } from './types.ts';

// A member and its description are written once, in the schema that REST has.
// These functions put type-graphql's decorators on an empty class; a type that
// differs from its schema is a class with decorators, written by hand.

/**
 * The GraphQL type of items. Its name is the schema's `$id`.
 *
 * @example const ToyType = objectTypeOf(toySchema);
 */
export function objectTypeOf<Schema extends TObject>(schema: Schema) {
  return classOnce(schema, 'object');
}

/**
 * The GraphQL type of inputs. The resolver validates them by the schema, so a
 * moment is text.
 *
 * @example const NewToyType = inputTypeOf(newToySchema);
 */
export function inputTypeOf<Schema extends TObject>(schema: Schema) {
  return classOnce(schema, 'input');
}

/** Objects may contain each other, and each has one type of a kind. */
const classes = {
  object: new WeakMap<TObject, ClassType>(),
  input: new WeakMap<TObject, ClassType>(),
};

function classOnce<Schema extends TObject>(
  schema: Schema,
  kind: keyof typeof classes,
) {
  const type = classes[kind].get(schema) ?? classOf(schema, kind);
  classes[kind].set(schema, type);
  return type as ClassType<Static<Schema> & object>;
}

/**
 * The arguments of a list, below others too, of its connection and of its live
 * list, which have the members of the list's query.
 *
 * @example const { list: ToyArguments } = argumentsOf(toyQuerySchema);
 */
export function argumentsOf({ properties }: TObject) {
  const { limit = {}, after: _, before: __, ...ofList } = properties;
  const { maximum: most = pageLimit.max } = limit as MemberSchema;
  const { sort, ...filters } = ofList;
  if (sort)
    enumOf({ ...memberOf(sort), description: 'Order of a list.' }, orderWords);
  return {
    list: optional({ ...paging(most), ...ofList }),
    nested: optional({ ...nestedPaging(most), ...ofList }),
    connection: optional({ ...connectionPaging(most), ...ofList }),
    live: optional({ ...livePlace, ...filters }),
  };
}

/** The arguments of a field. */
export function argumentsType(schema: TObject) {
  return classOf(schema, 'arguments');
}

const optional = (members: TProperties) =>
  argumentsType(Type.Partial(Type.Object(members)));

const pageSize = (size: number, maximum: number) =>
  Type.Integer({
    default: size,
    maximum,
    description: `How many at most, ${pageLimit.min} to ${maximum}.`,
  });

const paging = (most: number) => ({
  limit: pageSize(pageLimit.default, most),
  after: int64Schema({
    description: 'Only those after this one: the last id already seen.',
  }),
  before: int64Schema({
    description: 'Only the last ones before this one: the first id seen.',
  }),
});

/** Lists below others multiply their cost. */
const nestedPaging = (most: number) => ({
  ...paging(most),
  limit: pageSize(pageLimit.nested, most),
});

const connectionPaging = (maximum: number) => ({
  first: Type.Integer({
    maximum,
    description: `How many at most, 0 to ${maximum}; ${pageLimit.default} when absent.`,
  }),
  after: textSchema({ description: 'Only those after this cursor.' }),
  last: Type.Integer({
    description: `How many of the last ones at most, 0 to ${maximum}, in place of \`first\`.`,
  }),
  before: textSchema({
    description: 'Only those before this cursor, with `last`.',
  }),
});

const livePlace = {
  after: int64Schema({
    description:
      'Everything after this one, and then what is added: the last id already seen. Only what is added from now on when absent. `Last-Event-ID` takes its place.',
  }),
};

function orderWords(order: string) {
  const [member, descending] = order.split(/_(desc)$/);
  const way = descending ? 'Descending' : 'Ascending';
  return `${way} by ${member}.`;
}

function classOf(
  schema: TObject,
  kind: 'object' | 'input' | 'arguments',
): ClassType {
  class Members {}
  const { $id = '', description = '', required = [] } = schema as MemberSchema;
  const decorate = {
    object: () => ObjectType($id, { description, simpleResolvers: true }),
    input: () => InputType($id, { description }),
    arguments: () => ArgsType(),
  }[kind]();
  decorate(Members);
  const isInput = kind !== 'object';
  const members = Object.entries<MemberSchema>(schema.properties);
  for (const [name, member] of members) {
    const { items, default: given, maximum } = member;
    // GraphQL has no literal for an object: the schema's reader adds it.
    const isJson = given && typeof given === 'object' && !items;
    const defaultValue = isJson ? undefined : given;
    const { description = '' } = { ...items, ...member };
    const mayBeAbsent = defaultValue === undefined || kind === 'arguments';
    const isOptional = mayBeAbsent && !required.includes(name);
    const { nullable: isNullable = 'anyOf' in member } = member;
    const nullable = isOptional || isNullable;
    const options = { nullable, description, ...(isInput && { defaultValue }) };
    const type = typeOf(member, isInput);
    Field(() => type, options)(Members.prototype, name);
    // The cost of a page reads it.
    if (isInput) Extensions({ maximum })(Members.prototype, name);
  }
  return Members;
}

/** By their names. */
const scalars: Record<string, object> = {
  ID,
  DateTimeISO: GraphQLISODateTime,
  JSON: AnyJSON,
  '[String!]': [String],
  Int,
  Float,
  Boolean,
  String,
};
/** Those of other kinds. */
const added: Record<string, GraphQLScalarType> = {};

function scalarOf({ graphql }: Kind) {
  const { name, description } = graphql;
  if (scalars[name]) return scalars[name];
  added[name] ??= new GraphQLScalarType(graphql);
  if (added[name].description !== description)
    reportFault(`Two kinds have the GraphQL name ${name}.`);
  return added[name];
}

function typeOf(schema: TSchema, isInput: boolean): object {
  const { items, properties } = schema as MemberSchema;
  if (items) return [typeOf(items, isInput)];
  const nested = schema as TObject;
  if (properties) return isInput ? inputTypeOf(nested) : objectTypeOf(nested);
  const member = memberOf(schema);
  const { kind } = member;
  if (kind === kinds.enum) return enumOf(member);
  if (kind === kinds.moment && isInput) return String;
  return scalarOf(kind);
}

/**
 * The enumeration that `registerEnumType` has registered, or else a new one.
 *
 * @param wordsOf describes a value
 */
function enumOf(
  { $id = '', values, description = '' }: Member,
  wordsOf?: (value: string) => string,
) {
  const registered = metadataOf('enums').find(({ name }) => name === $id);
  if (registered) return registered.enumObj;
  for (const value of values)
    if (!/^(?!__|(?:true|false|null)$)[a-z_]\w*$/i.test(value))
      reportFault(`GraphQL has no name for "${value}" of ${$id}.`);
  const own = Object.fromEntries(values.map((value) => [value, value]));
  const valuesConfig = mapMembers(own, (value) => ({
    description: wordsOf?.(value),
  }));
  registerEnumType(own, { name: $id, description, valuesConfig });
  return own;
}

/**
 * Compares the members of an entity in the REST schema and in the GraphQL type
 * of its name, because Fastify's serialiser drops members that the schema
 * lacks, and GraphQL answers 500 for a value of another type. A column may be
 * missing in both.
 *
 * @param hidden members that some callers do not see
 * @throws Error naming a column that is not the same in both, or a decimal with
 *   other digits than the table's
 */
export function assertSameMembers(
  { className, props }: EntityMetadata,
  rest: unknown,
  type?: GraphQLNamedType,
  hidden: readonly string[] = [],
) {
  if (!rest || !isObjectType(type)) return;
  const { properties = {}, required = [] } = rest as Partial<TObject>;
  const needed: readonly string[] = required;
  for (const { name, precision, scale = 0 } of props) {
    const member = properties[name] && memberOf(properties[name]);
    const column = `${className}.${name}`;
    const expected = member && typeTextOf(member);
    const isAlwaysThere = needed.includes(name) || !member?.isNullable;
    if (hidden.includes(name) && member && isAlwaysThere)
      reportFault(
        `${column} is hidden from some, so it is Type.Optional(nullable(...)) in the REST schema.`,
      );
    const { type: found } = type.getFields()[name] ?? {};
    if (`${expected}` !== `${found}`)
      reportFault(
        `${column} is ${expected ?? 'absent'} in the REST schema ${className}, and ${found ?? 'absent'} in the GraphQL type.`,
      );
    const digits = member?.kind.digits;
    if (digits && `${digits}` !== `${[precision, scale]}`)
      reportFault(
        `${column} has other digits in the REST schema than in the table.`,
      );
  }
}

/** As the schema definition language has it. */
function typeTextOf({ kind, $id, isNullable }: Member) {
  const name = kind.graphql.name || $id;
  return isNullable ? `${name}` : `${name}!`;
}
