import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { reportFault } from '../errors.ts';
import { type Int64, int64 } from './int64.ts';
import { decimalOf, kindIn, kinds } from './kinds.ts';
import {
  type Bounds,
  int32,
  type Kind,
  type MemberSchema,
  mostGiven,
  ofKind,
  unwrapped,
  wordsOf,
} from './rules.ts';
import type { Input } from './validator.ts';

/**
 * int64 on the wire: a JSON integer, exact to the last digit.
 *
 * @example ownerId: int64Schema({ description: 'The owner.' })
 */
export function int64Schema(
  options: { description: string; examples?: number[] } & {
    [Bound in keyof Bounds]: number;
  },
) {
  return Type.Unsafe<Int64>({ type: 'integer', format: 'int64', ...options });
}

interface TextOptions {
  /** @default 0 */
  minLength?: number;
  /** @default 1000 */
  maxLength?: number;
  pattern?: string;
  format?: string;
  description: string;
  examples?: string[];
}

/**
 * Text that PostgreSQL can store.
 *
 * @param options `maxLength` is in characters (Unicode code points), as JSON
 *   Schema counts them
 * @example name: textSchema({ maxLength: 200, description: 'The full name.' })
 */
export function textSchema(options: TextOptions) {
  return Type.String({ ...options, maxLength: options.maxLength ?? 1000 });
}

/** Decimals of a column `numeric(precision, scale)`. */
function decimalPattern(precision: number, scale: number) {
  const most = precision - scale - 1;
  const whole = most < 0 ? '' : `|[1-9]\\d{0,${most}}`;
  const fraction = scale > 0 ? `(\\.\\d{1,${scale}})?` : '';
  return `^-?(0${whole})${fraction}$`;
}

/**
 * An exact decimal, as text like `12.30`, because most clients read a JSON
 * number as a double.
 *
 * @param options JSON Schema has no bounds of texts: the description says them
 * @example price: decimalSchema(8, 2, { description: 'In euros.', minimum: '0' })
 */
export function decimalSchema(
  precision: number,
  scale: number,
  options: { description: string; examples?: string[] } & Bounds,
) {
  const { description, examples, ...given } = options;
  const pattern = decimalPattern(precision, scale);
  const wrong = Object.values(given).find((one) => !one.match(pattern));
  if (wrong !== undefined)
    reportFault(`The bound ${wrong} is no decimal of ${precision}, ${scale}.`);
  const words = wordsOf(given).join(', ');
  return Type.String({
    ...(examples && { examples }),
    description: words ? `${description} It is ${words}.` : description,
    // With a sign, a point, and the zero before it.
    maxLength: Math.max(precision, scale + 1) + 2,
    pattern,
    [ofKind]: decimalOf(precision, scale, given),
  });
}

/** What a member holds. Its column and its GraphQL type follow from it. */
export interface Member {
  readonly kind: Kind;
  readonly schema: MemberSchema;
  readonly isNullable: boolean;
  /** The component of an enumeration, and its values. */
  readonly $id?: string | undefined;
  readonly values: string[];
  readonly description?: string | undefined;
}

/**
 * Reads the schema of a member, with or without `nullable` and `use`. A
 * reference (`$ref`) is to an enumeration.
 */
export function memberOf(schema: TSchema): Member {
  const { member, isNullable } = unwrapped(schema);
  const { enum: values = [], description, $ref } = member;
  const { $id = $ref?.replace('#', '') } = member;
  const kind = kindIn(member);
  if (!kind)
    reportFault(
      `No column and no GraphQL type follows from ${JSON.stringify(schema)}: write it by hand.`,
    );
  return {
    kind: kind ?? kinds.string,
    schema: member,
    isNullable,
    $id,
    values,
    description,
  };
}

/**
 * A date and time: RFC 3339, section 5.6, to the millisecond.
 *
 * @example at: moment({ description: 'When it begins.' })
 */
export function moment(options: { description: string; examples?: string[] }) {
  return Type.Unsafe<Date>({ type: 'string', format: 'date-time', ...options });
}

/**
 * `nullable` and `use` copy a schema, and the copy loses the mark of `Optional`.
 * So write `Optional(nullable(...))`.
 */
type Required = TSchema & { '~optional'?: never };

/**
 * The same schema, or null.
 *
 * @example note: Type.Optional(nullable(textSchema({ description: 'A note.' })))
 */
export function nullable<Schema extends Required>(schema: Schema) {
  const { allOf = [schema], ...rest } = schema as TSchema & {
    allOf?: TSchema[];
  };
  const isNamed = '$id' in schema || 'allOf' in schema;
  // The serialiser writes a bigint with `nullable`, but not inside `anyOf`. A
  // `$ref` may have no siblings.
  const orNull = isNamed
    ? { ...('allOf' in schema && rest), anyOf: [...allOf, { type: 'null' }] }
    : { ...schema, nullable: true };
  return Type.Unsafe<Static<Schema> | null>(orNull);
}

/** The version of an item, which each change increments. */
export const versionSchema = Type.Integer({
  minimum: 1,
  maximum: int32.maximum,
  description: 'Its version.',
});

/** The query parameters of a removal. */
export const removalSchema = Type.Object(
  { version: Type.Optional(versionSchema) },
  { additionalProperties: false },
);
export type Removal = Input<typeof removalSchema>;

/**
 * The input of a change: the version that the client has read, and the members
 * to set. Others stay, null clears (RFC 7396). Defaults are left out: they
 * would overwrite absent members.
 *
 * @example changeSchema({ state, price }, { $id: 'CheckupChange' })
 */
export function changeSchema<Members extends TProperties>(
  members: Members,
  options: { $id: string; description?: string },
) {
  const withoutDefaults = mapMembers<MemberSchema, unknown>(
    members,
    ({ default: _, ...schema }) => schema,
  );
  const { properties } = Type.Partial(Type.Object(withoutDefaults as Members));
  return Type.Object(
    { version: versionSchema, ...properties },
    { ...options, additionalProperties: false, minProperties: 2 },
  );
}

/**
 * An item has all members, so no default. Its texts have no bounds, because
 * some may have been stored before the input had these.
 *
 * @example itemSchema({ id, ...members }, { $id: 'Toy' })
 */
export function itemSchema<Members extends TProperties>(
  members: Members,
  options: { $id: string; description?: string; examples?: object[] },
) {
  const properties = mapMembers<MemberSchema, unknown>(
    members,
    (member, name) => {
      const { kind, isNullable } = memberOf(member);
      const { default: initial, ...stored } = member;
      if ('~optional' in member && initial === undefined && !isNullable)
        reportFault(
          `${name} of ${options.$id} may be absent, so it must be nullable: Type.Optional(nullable(...)).`,
        );
      if (kind !== kinds.string) return stored;
      const { minLength: _, maxLength, pattern: __, ...text } = stored;
      return { ...text, [mostGiven]: maxLength };
    },
  );
  return Type.Required(Type.Object(properties as Members), options);
}

/** Changes each member of an object. */
export function mapMembers<From, To>(
  members: Record<string, From> = {},
  change: (member: From, name: string) => To,
): Record<string, To> {
  const changed = Object.entries(members).map(([name, member]) => [
    name,
    change(member, name),
  ]);
  return Object.fromEntries(changed);
}

/**
 * One of the values of an enumeration, as a named component.
 *
 * @example enumSchema('VisitState', { planned: 'planned' }, 'Where it stands.')
 */
export function enumSchema<Value extends string>(
  id: string,
  values: Record<string, Value>,
  description: string,
) {
  return Type.Unsafe<Value>({
    $id: id,
    type: 'string',
    enum: Object.values(values),
    description,
  });
}

/**
 * Refers to a named schema, and describes its meaning here.
 *
 * @example state: use(VisitState, 'Where the visit stands.')
 */
export function use<Schema extends Required>(
  schema: Schema,
  description: string,
) {
  return Type.Unsafe<Static<Schema>>({ allOf: [schema], description });
}

/**
 * A member that clients may omit; for the service it is always present.
 *
 * @example state: withDefault(use(VisitState, 'Its state.'), 'planned')
 */
export function withDefault<Schema extends TSchema>(
  schema: Schema,
  value: Static<Schema>,
) {
  return Type.Optional({ ...schema, default: value }) as unknown as Schema;
}

/**
 * Documents the id in a path, which stays text. Nothing validates it: an id
 * that is not an int64 is a 404.
 *
 * @example params: idSchema('toyId', 'toy')
 */
export function idSchema<Name extends string>(name: Name, noun: string) {
  const id = int64Schema({
    description: `Identifier of the ${noun}, up to ${int64.max}.`,
    examples: [1],
  });
  return Type.Unsafe<Record<Name, string>>(Type.Object({ [name]: id }));
}
