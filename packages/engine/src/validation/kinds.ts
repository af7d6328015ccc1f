import { exact, parseStoredJson } from '@animal-store/exact-json';
import { BigIntType, JsonType, p } from '@mikro-orm/core';
import Format from 'typebox/format';
import { reportFault } from '../errors.ts';
import { int64FromDigits } from './int64.ts';
import {
  anyJson,
  type Bounds,
  boundedText,
  dateTime,
  decimal,
  finite,
  formatted,
  int32,
  integer,
  integersOf,
  type Kind,
  type MemberSchema,
  ofKind,
  oneOf,
  trueOrFalse,
  unwrapped,
} from './rules.ts';

/** In memory, an int64 of an entity is that of an item. */
class Int64Type extends BigIntType<'bigint'> {
  constructor() {
    super('bigint');
  }

  override convertToJSValue(digits: unknown) {
    return int64FromDigits(`${digits}`) as bigint;
  }

  override toJSON(value: unknown) {
    return value as bigint;
  }
}
export const int64Column = () => p.type(Int64Type);

/** JSON with exact integers, of which pg would round some. */
class ExactJsonType extends JsonType {
  override convertToJSValueSQL(column: string) {
    return `${column}::text`;
  }

  override convertToJSValue(text: string) {
    return parseStoredJson(text);
  }
}

/**
 * The kinds that need no `ofKind`. A cast of a column to another type than
 * `type`, like `varchar(10)`, could change a value. No setting of a session
 * changes the texts.
 */
export const kinds = {
  int64: {
    rule: (member) => (member.type === 'integer' ? integer(member) : undefined),
    column: int64Column,
    codec: { fromText: int64FromDigits },
    type: 'bigint bigint',
    graphql: { name: 'ID' },
  },
  decimal: {
    rule: boundedText,
    column: () => p.decimal(),
    // Not NaN, and no infinity.
    codec: {
      fromText: (value) => (/\d$/.test(value) ? value : undefined),
      toJson: (column) => `${column}::text`,
      isSpelled: true,
    },
    type: 'numeric string',
    graphql: {
      name: 'Decimal',
      description:
        'An exact decimal, as a string like "12.30": most clients read a JSON number as a double.',
    },
    csv: 'text',
  },
  moment: {
    rule: () => dateTime,
    column: () => p.datetime(3),
    codec: {
      toText: (column) =>
        within(
          column,
          ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'],
          `(extract(epoch from ${wholeTime(column)}) * 1000)::bigint::text`,
        ),
      fromText: (value) =>
        value === beyond ? undefined : new Date(Number(value)),
      toJson: (column) =>
        `to_char(${wholeTime(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      writeLast: (at: Date) => at.toISOString().replace('Z', '999Z'),
      toCursor: (key) => key,
    },
    type: 'timestamptz Date',
    graphql: { name: 'DateTimeISO' },
  },
  date: {
    // PostgreSQL has no year 0.
    rule: () =>
      formatted(
        'an existing date like 2030-12-05',
        (day) => Format.IsDate(day) && day > '0001',
      ),
    column: () => p.date(),
    codec: {
      toText: (column) =>
        within(
          column,
          ['0001-01-01', '9999-12-31'],
          `to_char(${column}, 'YYYY-MM-DD')`,
        ),
      fromText: (value) => (value === beyond ? undefined : value),
      toCursor: (key) => key,
    },
    type: 'date string',
    graphql: {
      name: 'Date',
      description: 'A day of the calendar, without a time zone: "2030-12-05".',
    },
  },
  uuid: {
    rule: () =>
      formatted(
        'a UUID like 0190163d-8694-739b-aea5-966c26f8ad91',
        Format.IsUuid,
      ),
    column: () => p.uuid(),
    codec: {},
    type: 'uuid string',
    graphql: {
      name: 'UUID',
      description: 'A UUID of RFC 9562, in lower case.',
    },
  },
  json: {
    rule: () => anyJson,
    column: () => p.type(ExactJsonType),
    codec: {
      fromText: parseStoredJson,
      write: (value) => JSON.stringify(value, exact),
      isAnyText: true,
      isSpelled: true,
    },
    type: 'jsonb any',
    graphql: { name: 'JSON' },
    isOpaque: true,
    csv: 'json',
  },
  texts: {
    // The validator has the rule of arrays.
    rule: () => undefined,
    column: () => p.array(),
    codec: {
      toText: (column) => `to_json(${column})::text`,
      fromText(value) {
        const texts: unknown[] = JSON.parse(value);
        const areTexts = texts.every((one) => typeof one === 'string');
        return areTexts ? texts : undefined;
      },
      write: arrayOf,
      isAnyText: true,
    },
    type: 'text[] string[]',
    graphql: { name: '[String!]' },
    isOpaque: true,
    csv: 'json',
  },
  enum: {
    rule({ enum: values = [] }) {
      const areTexts = values.every((value) => typeof value === 'string');
      return areTexts ? oneOf(values) : undefined;
    },
    column: ({ enum: values = [] }) => p.enum(values),
    codec: {},
    graphql: { name: '' },
  },
  integer: {
    rule: integer,
    column(member) {
      const { minimum, maximum } = int32;
      const ends = Object.values(integersOf(member)).filter(Number.isFinite);
      if (ends.some((end) => end < minimum || end > maximum))
        reportFault(
          `An integer beyond 32 bits is an int64Schema: ${JSON.stringify(member)}.`,
        );
      return p.integer();
    },
    // It refuses what is no integer.
    codec: { fromText: int64FromDigits },
    type: 'int number',
    graphql: { name: 'Int' },
  },
  number: {
    rule: finite,
    column: () => p.double(),
    codec: {
      toText: bytesOf,
      fromText(bytes) {
        const value = doubleFrom(bytes);
        return Number.isFinite(value) ? value : undefined;
      },
      toCursor: bytesOf,
      fromCursor: (bytes) => `${doubleFrom(bytes)}`,
    },
    type: 'double precision number',
    graphql: { name: 'Float' },
  },
  boolean: {
    rule: () => trueOrFalse,
    column: () => p.boolean(),
    codec: { fromText: (value) => value === 'true' },
    type: 'boolean boolean',
    graphql: { name: 'Boolean' },
  },
  string: {
    rule: boundedText,
    column: () => p.text(),
    codec: { isAnyText: true },
    type: 'text string',
    graphql: { name: 'String' },
    csv: 'text',
  },
} satisfies Record<string, Kind>;

/** A decimal of a column `numeric(precision, scale)`. */
export function decimalOf(
  precision: number,
  scale: number,
  bounds?: Bounds,
): Kind {
  return {
    ...kinds.decimal,
    rule(member) {
      const text = boundedText(member);
      return text && decimal(text, precision, scale, bounds);
    },
    column: () => p.decimal().precision(precision).scale(scale),
    digits: [precision, scale],
  };
}

/** Formats with a kind of their own. */
const byFormat: Record<string, Kind> = {
  int64: kinds.int64,
  'date-time': kinds.moment,
  date: kinds.date,
  uuid: kinds.uuid,
};

/** The kind of a schema without `nullable` and `use`. */
export function kindIn(member: MemberSchema): Kind | undefined {
  const { type = 'json', format = '', enum: values, $ref, items } = member;
  if (member[ofKind]) return member[ofKind];
  const { member: item, isNullable } = unwrapped(items ?? {});
  const hasTexts = items && !isNullable && kindIn(item) === kinds.string;
  if (hasTexts) return kinds.texts;
  if (values ?? $ref) return kinds.enum;
  return byFormat[format] ?? kinds[type as keyof typeof kinds];
}

/** Milliseconds are shown. Others than the service may store microseconds. */
export const wholeTime = (time: string) =>
  `date_trunc('milliseconds', ${time})`;

const beyond = 'beyond';

/** A text for values beyond those that clients may give. */
function within(column: string, [first, last]: [string, string], text: string) {
  return `case when ${column} not between '${first}' and '${last}' then '${beyond}' else ${text} end`;
}

/** A double as it is: the digits of its text are a setting of the session. */
function bytesOf(column: string) {
  return `encode(float8send(${column}::float8), 'hex')`;
}

function doubleFrom(bytes: string) {
  return Buffer.from(bytes, 'hex').readDoubleBE();
}

/** An array as PostgreSQL's text. */
function arrayOf(texts: string[]) {
  const quoted = texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`);
  return `{${quoted.join(',')}}`;
}
