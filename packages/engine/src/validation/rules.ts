import {
  InexactNumber,
  isRawJSON,
  isRecord,
  nearestDouble,
  rawJSON,
} from '@animal-store/exact-json';
import type { TSchema } from 'typebox';
import Format from 'typebox/format';
import { int64, int64From, int64FromText } from './int64.ts';

/** @returns undefined for a value that is not right */
export const onlyIf = <Value>(isRight: boolean, value: Value) =>
  isRight ? value : undefined;

/** The validation of one member of an input. */
export interface Rule {
  /** The type of valid values, in JSON Schema's words. */
  readonly type?: string;
  /** The keywords that it checks. */
  readonly keywords?: readonly string[];
  /**
   * @param place of the value
   * @param faults gets those of members of an object, and of items
   * @returns the value for the service; undefined when the given value is
   *   invalid.
   */
  read(value: unknown, place?: string, faults?: string[]): unknown;
  /** Describes valid values, for the error about an invalid one. */
  describe(value: unknown): string;
  /** Parses a text of a query string or of GraphQL. */
  parse?(text: string): unknown;
  readonly isLenient?: boolean;
  /** How many characters a text may have. */
  readonly maxLength?: number;
  /** True for what may be an array. */
  readonly isList?: boolean;
  /** True for what has faults of its own. */
  readonly hasPlaces?: boolean;
}

/**
 * A keyword of arrays, set by `several.ts`: an invalid value is refused without
 * the others.
 */
export const isSeparate = 'x-separate';

/**
 * A schema has its kind as this member. It is a symbol, so no contract shows
 * it. A copy of a schema keeps it, and so does a property of an entity.
 */
export const ofKind = Symbol('kind');
/** The `maxLength` of a text's input: what is stored may be longer. */
export const mostGiven = Symbol('mostGiven');
/** SQL for the default of the column of a member. */
export const initialValue = Symbol('initialValue');

/**
 * All that is known of the values of a member: each kind is one entry. A schema
 * names one that is not in `kinds` by `ofKind`.
 */
export interface Kind {
  /** @returns undefined for a schema without a bound */
  rule(member: MemberSchema): Rule | undefined;
  /** MikroORM's property. */
  column(member: MemberSchema): { '~options': object; nullable(): object };
  codec: Codec;
  /** Of a property written by hand: PostgreSQL's type, then MikroORM's. */
  type?: string;
  /** Its GraphQL type, a scalar if no other has this name. */
  graphql: { name: string; description?: string };
  /** Lists may not be filtered and sorted by it. */
  isOpaque?: true;
  /**
   * Its field of CSV: an empty `text` is not null, and `json` is parsed. A field
   * of other kinds is the value as text.
   */
  csv?: 'text' | 'json';
  /** Of a decimal. */
  digits?: readonly [precision: number, scale: number];
}

/**
 * How the values of a column are transferred as PostgreSQL's text, and parsed.
 */
export interface Codec {
  /** SQL that converts a value to text, unless a cast does. */
  toText?: (column: string) => string;
  /**
   * Parses the text; when absent, the text is the value. Undefined for a value
   * that the service would not store.
   */
  fromText?: (text: string) => unknown;
  /**
   * SQL for the JSON of a value in an answer. Without it, a trace stores the
   * text of a module's kind, and PostgreSQL's JSON of the engine's.
   */
  toJson?: (column: string) => string;
  /** SQL for the JSON of a value in a cursor, unless the text is. */
  toCursor?: (key: string) => string;
  /** Converts it for the cursor, unless it is the text of a parameter. */
  fromCursor?: (json: string) => string;
  /** Converts a value to a parameter, where PostgreSQL has many spellings. */
  write?: (value: never) => string;
  /** The same for the last of several stored values that are shown as it. */
  writeLast?: (value: never) => string;
  /** True when a value's text may be empty or hold a comma. */
  isAnyText?: true;
  /** True when PostgreSQL spells a value in its own way. */
  isSpelled?: true;
}

/** The JSON Schema of a member. */
export interface MemberSchema
  extends Omit<TSchema, 'type'>,
    Partial<Record<NumberKeyword, number>>,
    Partial<Record<TextKeyword, string>>,
    Partial<Record<'enum' | 'required', string[]>>,
    Partial<Record<'allOf' | 'anyOf', TSchema[]>> {
  examples?: unknown[];
  default?: unknown;
  properties?: Record<string, TSchema>;
  additionalProperties?: boolean;
  items?: TSchema;
  nullable?: boolean;
  [isSeparate]?: boolean;
  [ofKind]?: Kind;
  [initialValue]?: string;
  [mostGiven]?: number;
}
type NumberKeyword =
  | keyof typeof conditions
  | `${'min' | 'max'}${'Length' | 'Items' | 'Properties'}`;
type TextKeyword =
  | '$id'
  | '$ref'
  | 'type'
  | 'format'
  | 'pattern'
  | 'description';

type Holds<Of> = (value: Of, bound: Of) => boolean;
const holds = <Of = bigint | number>(words: string, holds: Holds<Of>) => ({
  words,
  holds,
});
/** 0.3 / 0.1 is 2.9999999999999996. */
const isNearWhole = (times: number, error: number) =>
  Math.abs(times - Math.round(times)) <= error * Math.abs(times);
/** The keywords of numbers: their words, and what holds for a value. */
const conditions = {
  minimum: holds('at least', (value, bound) => value >= bound),
  maximum: holds('at most', (value, bound) => value <= bound),
  exclusiveMinimum: holds('greater than', (value, bound) => value > bound),
  exclusiveMaximum: holds('less than', (value, bound) => value < bound),
  multipleOf: holds('a multiple of', (value: number, bound: number) =>
    isNearWhole(value / bound, Number.isInteger(bound) ? 0 : Number.EPSILON),
  ),
};
export const ofNumbers = Object.keys(conditions) as Array<
  keyof typeof conditions
>;

/** The schema of a member without `nullable` and `use`. */
export function unwrapped(
  schema: TSchema,
  orNull = false,
): { member: MemberSchema; isNullable: boolean } {
  const { nullable: isNullable = orNull, ...member } = schema as MemberSchema;
  const { anyOf = [], allOf = anyOf } = member;
  const [inner, other] = allOf as MemberSchema[];
  const isOrNull = anyOf.length === 2 && other?.type === 'null';
  const isWrapped = isOrNull || allOf.length === 1;
  if (!inner || !isWrapped) return { member, isNullable };
  return unwrapped(inner as TSchema, isOrNull || isNullable);
}

export const trueOrFalse: Rule = {
  describe: () => 'true or false',
  read: (value) => onlyIf(typeof value === 'boolean', value),
  parse: (text) => [true, false].find((one) => `${one}` === text),
};

export function oneOf(values: string[]): Rule {
  const lower = values.map((value) => value.toLowerCase());
  const isNear = (value: unknown) =>
    typeof value === 'string' && lower.includes(value.trim().toLowerCase());
  return {
    keywords: ['enum'],
    read: (value) => values.find((one) => one === value),
    describe(value) {
      const hint = isNear(value) ? ', spelled exactly so' : '';
      return `one of ${values.join(', ')}${hint}`;
    },
  };
}

/** The bounds of a column of 32 bits, and of GraphQL's `Int`. */
export const int32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

/** The least and the greatest integer that a schema allows. */
export function integersOf({
  minimum = Number.NEGATIVE_INFINITY,
  exclusiveMinimum: above = Number.NEGATIVE_INFINITY,
  maximum = Number.POSITIVE_INFINITY,
  exclusiveMaximum: below = Number.POSITIVE_INFINITY,
}: MemberSchema) {
  const least = Math.max(Math.ceil(minimum), Math.floor(above) + 1);
  const most = Math.min(Math.floor(maximum), Math.ceil(below) - 1);
  return { least, most };
}

/** @returns undefined for an integer without bounds, or steps that are none */
export function integer(schema: MemberSchema): Rule | undefined {
  const { format, multipleOf: step = 1 } = schema;
  const { least, most } = integersOf(schema);
  const isInt64 = format === 'int64';
  const hasEnds = Number.isFinite(least) && Number.isFinite(most);
  const isBounded = hasEnds && least <= most && !format;
  const isWhole = Number.isInteger(step) && step > 0;
  if (!isWhole || !(isInt64 || isBounded)) return undefined;
  const min = Number.isFinite(least) ? BigInt(least) : int64.min;
  const max = Number.isFinite(most) ? BigInt(most) : int64.max;
  const multiple = step === 1 ? '' : `, a multiple of ${step}`;
  return {
    keywords: ['format', ...ofNumbers],
    describe: () => `an integer between ${min} and ${max}${multiple}`,
    parse: int64FromText,
    read(value) {
      const integer = int64From(value);
      if (integer === undefined || integer < min || integer > max)
        return undefined;
      return onlyIf(BigInt(integer) % BigInt(step) === 0n, integer);
    },
  };
}

type Bounded = { [Name in keyof typeof conditions]?: number | string };

function namesIn<Of extends Bounded>(bounds: Of) {
  const given = ofNumbers.filter((name) => bounds[name] !== undefined);
  return given as Array<keyof Of & keyof typeof conditions>;
}

export function wordsOf(bounds: Bounded) {
  return namesIn(bounds).map(
    (name) => `${conditions[name].words} ${bounds[name]}`,
  );
}

export function finite(bounds: MemberSchema): Rule {
  const given = namesIn(bounds);
  return {
    keywords: ofNumbers,
    describe: () =>
      ['a number of double precision', ...wordsOf(bounds)].join(', '),
    parse: (text) => onlyIf(digits.test(text), Number(text)),
    read(value) {
      const number = nearestDouble(value);
      const isNumber = typeof number === 'number' && Number.isFinite(number);
      const isMet = (name: (typeof given)[number]) =>
        conditions[name].holds(number as number, bounds[name] as number);
      return onlyIf(isNumber && given.every(isMet), number);
    },
  };
}

const digits = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

// PostgreSQL's text cannot store U+0000, and a lone surrogate is not a
// character.
function isStorable(text: string) {
  return !text.includes('\u0000') && text.isWellFormed();
}

/** @returns undefined without a bound, or of an unknown format */
export function boundedText({
  minLength = 0,
  maxLength,
  pattern,
  format,
  examples,
}: MemberSchema): Rule | undefined {
  const isKnown = !format || Format.Has(format);
  if (maxLength === undefined || !isKnown) return undefined;
  const expression = pattern !== undefined && new RegExp(pattern, 'u');
  const like = examples ? `, like ${examples[0]}` : '';
  const range = minLength > 0 ? `${minLength} to` : 'at most';
  const faultOf = (value: unknown) => {
    if (typeof value !== 'string') return 'a string';
    if (!isStorable(value)) return 'free of U+0000 and of lone surrogates';
    // JSON Schema counts code points, of at most two code units each.
    const isTooLong = value.length > 2 * maxLength;
    const length = isTooLong ? value.length : [...value].length;
    if (length < minLength || length > maxLength)
      return `${range} ${maxLength} characters long`;
    if (expression && !expression.test(value))
      return `a text that matches ${pattern}${like}`;
    if (format && !Format.Test(format, value))
      return `a text in the format ${format}`;
    return undefined;
  };
  return {
    keywords: ['minLength', 'maxLength', 'pattern', 'format'],
    maxLength,
    read: (value) => onlyIf(faultOf(value) === undefined, value),
    describe: (value) => `${faultOf(value)}`,
  };
}

/** Bounds of a decimal, as text like `0.01`. */
export type Bounds = Partial<
  Record<Exclude<keyof typeof conditions, 'multipleOf'>, string>
>;

/** A decimal without its point. */
function wholeOf(text: string, scale: number) {
  const [whole, part = ''] = text.split('.');
  return BigInt(`${whole}${part.padEnd(scale, '0')}`);
}

/** One text for each number: 1.10 is 1.1, and -0.0 is 0. */
export function decimal(
  { read, describe, ...rule }: Rule,
  precision: number,
  scale: number,
  bounds: Bounds = {},
): Rule {
  const given = namesIn(bounds);
  const form = `a decimal of at most ${precision - scale} digits before the point and ${scale} after it`;
  const words = [form, ...wordsOf(bounds)].join(', ');
  const shortest = (text: string) =>
    text.replace(/\.0*$|(\.\d*?)0+$/, '$1').replace(/^-0$/, '0');
  return {
    ...rule,
    describe: (value) => (typeof value === 'string' ? words : describe(value)),
    read(value) {
      if (read(value) === undefined) return undefined;
      const text = `${value}`;
      const whole = wholeOf(text, scale);
      const isMet = given.every((name) =>
        conditions[name].holds(whole, wholeOf(`${bounds[name]}`, scale)),
      );
      return onlyIf(isMet, shortest(text));
    },
  };
}

const ofFormats = ['format', 'maxLength'];

const rfc3339 =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3}0{0,6})?(?:Z|[+-]\d\d:\d\d)$/i;
const isRfc3339 = (value: unknown): value is string =>
  typeof value === 'string' && rfc3339.test(value);
const firstYear = Date.parse('0001-01-01T00:00:00Z');
const lastYear = Date.parse('9999-12-31T23:59:59.999Z');

/** Parses RFC 3339, section 5.6, to a Date of the years 1 to 9999. */
export const dateTime: Rule = {
  keywords: ofFormats,
  describe(value) {
    const article = isRfc3339(value) ? 'an existing' : 'a';
    return `${article} date and time like 2030-12-05T00:00:00.000Z`;
  },
  read(value) {
    // Date reads 30 February as 1 March, and 24:00 as the next day.
    if (!isRfc3339(value) || !Format.IsDateTime(value)) return undefined;
    const date = new Date(value);
    const isInRange = +date >= firstYear && +date <= lastYear;
    return onlyIf(isInRange, date);
  },
};

/** Of a member with any JSON: characters of its text, and levels. */
const jsonBounds = { length: 8000, depth: 32 };

export const anyJson: Rule = {
  isList: true,
  maxLength: jsonBounds.length,
  describe: () =>
    `JSON of at most ${jsonBounds.length} characters and ${jsonBounds.depth} levels, with exact numbers, and free of U+0000 and of lone surrogates`,
  read(value) {
    if (value === null) return undefined;
    try {
      const read = storable(value, jsonBounds.depth, { ...jsonBounds });
      const { length } = JSON.stringify(read, inDigits);
      return onlyIf(length <= jsonBounds.length, read);
    } catch {
      return undefined;
    }
  },
};

/** For `JSON.stringify`: PostgreSQL writes 1.5e-7 without an exponent. */
function inDigits(_name: string, value: unknown) {
  if (typeof value !== 'number') return value;
  const [digits = '', exponent] = `${value}`.split('e-');
  if (exponent === undefined) return value;
  const zeros = '0'.repeat(Number(exponent) - 1);
  const text = digits.replace('.', '').replace(/^-?/, `$&0.${zeros}`);
  return rawJSON(text);
}

// One for all, because a stack costs more than the check.
const notStorable = new Error('It is not storable.');

/**
 * Any JSON, its members in order.
 *
 * @throws Error when it would be changed
 */
function storable(
  value: unknown,
  depth: number,
  room: { length: number },
): unknown {
  // A value has at least one character, and is not read beyond the bound.
  room.length -= typeof value === 'string' ? value.length + 2 : 1;
  const isTooLarge = depth < 0 || room.length < 0;
  if (isTooLarge || value instanceof InexactNumber) throw notStorable;
  if (typeof value === 'bigint') return rawJSON(`${value}`);
  if (typeof value === 'string' && !isStorable(value)) throw notStorable;
  const within = (one: unknown) => storable(one, depth - 1, room);
  if (Array.isArray(value)) return value.map(within);
  if (!isRecord(value) || isRawJSON(value)) return value;
  const members = Object.keys(value)
    .sort()
    .map((name) => [storable(name, depth, room), within(value[name])]);
  return Object.fromEntries(members);
}

/** A text that is the same in upper case. */
export function formatted(
  words: string,
  isRight: (text: string) => boolean,
): Rule {
  return {
    keywords: ofFormats,
    describe: () => words,
    read(value) {
      if (typeof value !== 'string' || !isRight(value)) return undefined;
      return value.toLowerCase();
    },
  };
}
