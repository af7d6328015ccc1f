import {
  InexactNumber,
  isRawJSON,
  nearestDouble,
  rawJSON,
} from '@animal-store/exact-json';
import type { Static, TObject, TSchema } from 'typebox';
import Format from 'typebox/format';
import { badInput, reportFault } from '../errors.ts';
import { int64, int64From, int64FromText } from './int64.ts';

// A TypeBox schema describes each input once: OpenAPI shows it, `validator`
// validates by it, and TypeScript derives its type from it. A schema with parts
// that cannot be validated is rejected at start.

declare const isValidated: unique symbol;

/** A validated value: a service accepts nothing else. */
export type Validated<Value> = Value & { readonly [isValidated]: true };

/** The validated input of a schema: what a service accepts. */
export type Input<Schema extends TSchema> = Validated<Static<Schema>>;

// 100 items with this many characters take up to 16 MiB, because JSON writes a
// character as six bytes at most. No later code counts bytes.
const maxItemLength = 27_962;
/** The same of a whole page. */
export const maxPageLength = 100 * maxItemLength;

/**
 * Compiles the schema of an object.
 *
 * @param isLenient for query strings and GraphQL: integers may be decimal
 *   digits, and null in an optional member that cannot be null counts as absent
 * @returns a function that throws StoreError BAD_USER_INPUT, naming every
 *   fault. It drops members that the schema does not name, unless it is closed
 *   (`additionalProperties: false`), and applies defaults to absent ones.
 * @throws Error for a schema with parts that cannot be validated, or whose
 *   texts could make a page larger than 16 MiB
 */
export function validator<Schema extends TObject>(
  schema: Schema,
  { isLenient = false } = {},
) {
  const read = readerOf(schema, isLenient);
  return (input: unknown): Validated<Static<Schema>> => {
    if (!isRecord(input)) throw badInput('The body must be a JSON object.');
    const faults: string[] = [];
    const output = read(input, '', faults);
    if (faults.length > 0) throw badInput(`${faults.join('; ')}.`);
    return output as Validated<Static<Schema>>;
  };
}

/** How many unknown members of an object an error names. */
export const mostNamed = 20;

/** The places of members that a schema does not name, at every depth. */
export function unknownIn(schema: TSchema, value: unknown, at = ''): string[] {
  const { items, maxItems = 0, properties } = unwrapped(schema).member;
  if (Array.isArray(value)) {
    // The validation refuses more by their number.
    if (!items || value.length > maxItems) return [];
    return value.flatMap((one, index) =>
      unknownIn(items, one, `${at}[${index}]`),
    );
  }
  if (!properties || !isRecord(value)) return [];
  return Object.keys(value).flatMap((name) => {
    const place = at === '' ? name : `${at}.${name}`;
    const member = Object.hasOwn(properties, name) && properties[name];
    return member ? unknownIn(member, value[name], place) : [place];
  });
}

/** @returns a function that reads an object, and adds its faults to a list */
function readerOf(schema: TObject, isLenient: boolean) {
  const { properties = {}, required = [], ...others } = schema as MemberSchema;
  // A change or removal may ignore nothing that it is given. In a change
  // (`changeSchema`), null clears a member.
  const isClosed = others.additionalProperties === false;
  const isChange = others.minProperties !== undefined;
  const notKnown = isChange ? 'cannot be changed' : 'is unknown';
  const members = Object.entries(properties).map(([name, member]) => {
    const rule = ruleOf(member, isLenient, name);
    const { default: otherwise } = member as MemberSchema;
    const isRequired = required.includes(name);
    if (otherwise !== undefined && rule.read(otherwise) === undefined)
      reportFault(
        `The default of ${name} must be ${expected(rule, otherwise)}.`,
      );
    // One input has one form: null is the same as an absent member.
    const mayBeNull = rule.read(null) === null;
    const isSame = mayBeNull && otherwise === undefined;
    const isIgnored = !mayBeNull && isLenient;
    const isAbsentAsNull = !isChange && !isRequired && (isSame || isIgnored);
    return { name, rule, isRequired, otherwise, isAbsentAsNull };
  });
  assertPageFits(members);
  return (input: Record<string, unknown>, place: string, faults: string[]) => {
    if (isClosed) {
      const isUnknown = (name: string) => !Object.hasOwn(properties, name);
      const unknown = Object.keys(input).filter(isUnknown);
      for (const name of unknown.slice(0, mostNamed))
        faults.push(`${place}${name} ${notKnown}`);
      const others = unknown.length - mostNamed;
      if (others > 0) faults.push(`${others} others are unknown`);
    }
    const output: Record<string, unknown> = {};
    for (const member of members) {
      const { name, rule, isRequired, otherwise, isAbsentAsNull } = member;
      let value = Object.hasOwn(input, name) ? input[name] : undefined;
      if (value === null && isAbsentAsNull) value = undefined;
      if (value === undefined) value = otherwise;
      if (value !== undefined) {
        const read = readAt(place + name, rule, value, faults);
        if (read !== undefined) output[name] = read;
      } else if (isRequired) faults.push(`${place}${name} is required`);
    }
    return output;
  };
}

/** @throws Error when a page of items could have too many bytes */
function assertPageFits(members: Array<{ name: string; rule: Rule }>) {
  const texts = members.filter(({ rule }) => rule.maxLength);
  const names = texts.map(({ name }) => name).join(' and ');
  let length = 0;
  for (const { rule } of texts) length += rule.maxLength ?? 0;
  if (length > maxItemLength)
    reportFault(
      `A page could exceed 16 MiB: ${names} have up to ${length} characters in all; at most ${maxItemLength} are allowed.`,
    );
}

/** @param place of the value, for example `treatments[2].price` */
function readAt(place: string, rule: Rule, value: unknown, faults: string[]) {
  const read = rule.read(value, place, faults);
  if (read === undefined)
    faults.push(`${place} must be ${expected(rule, value)}`);
  return read;
}

function expected(rule: Rule, value: unknown) {
  const { isLenient, isList, type } = rule;
  // Only a query string turns a repeated member into an array.
  if (isLenient && Array.isArray(value) && !isList) return 'given once';
  const words = rule.describe(value);
  if (isLenient && typeof value === 'string') return words;
  return words + butNot(value, type);
}

/**
 * Names the type of a value of the wrong type: without it the message about
 * `"5"` states a rule that 5 meets.
 */
function butNot(value: unknown, expected = '') {
  if (value === null) return ', not null';
  const type = jsonTypeOf(value);
  const isRight = ['', type].includes(expected.replace('integer', 'number'));
  if (isRight) return '';
  const article = /^[ao]/.test(type) ? 'an' : 'a';
  return `, not ${article} ${type}`;
}

function jsonTypeOf(value: unknown) {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint' || value instanceof InexactNumber)
    return 'number';
  return typeof value;
}

/** True for a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns undefined for a value that is not right */
const onlyIf = <Value>(isRight: boolean, value: Value) =>
  isRight ? value : undefined;

/** The validation of one member of an input. */
interface Rule {
  /** The type of valid values, in JSON Schema's words. */
  readonly type?: string | undefined;
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
  readonly maxLength?: number | undefined;
  /** True for what may be an array. */
  readonly isList?: boolean;
  /** True for what has faults of its own. */
  readonly hasPlaces?: boolean;
}

/** A keyword of arrays: an invalid value is refused without the others. */
export const isSeparate = 'x-separate';

/**
 * The precision and scale of an exact decimal. It is a symbol, so no contract
 * shows it. A copy of a schema keeps it.
 */
export const decimalDigits = Symbol('decimalDigits');

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
  [decimalDigits]?: readonly [precision: number, scale: number];
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

const annotations = [
  '$id',
  'type',
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
];
type Holds = (value: number, bound: number) => boolean;
const holds = (words: string, holds: Holds) => ({ words, holds });
/** The keywords of numbers: their words, and what holds for a value. */
const conditions = {
  minimum: holds('at least', (value, bound) => value >= bound),
  maximum: holds('at most', (value, bound) => value <= bound),
  exclusiveMinimum: holds('greater than', (value, bound) => value > bound),
  exclusiveMaximum: holds('less than', (value, bound) => value < bound),
  multipleOf: holds('a multiple of', (value, bound) =>
    Number.isInteger(value / bound),
  ),
};
const ofNumbers = Object.keys(conditions) as Array<keyof typeof conditions>;

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

/** @throws Error for a schema with an unsupported keyword or without a bound */
function ruleOf(schema: TSchema, isLenient: boolean, name = ''): Rule {
  const { member, isNullable } = unwrapped(schema);
  const found = kindOf(member, isLenient);
  const known = [...annotations, ...(found.keywords ?? [])];
  const unchecked = Object.keys(member).filter((one) => !known.includes(one));
  const isUnknown = found === noRule;
  if (isUnknown || unchecked.length > 0) {
    const what = isUnknown ? '' : `${unchecked.join(' and ')} of `;
    reportFault(
      `No rule checks ${what}${name} ${JSON.stringify(member)}: bound it (maxLength, minimum and maximum, maxItems), or give it a rule in validation/validator.ts.`,
    );
  }
  let rule: Rule = { type: member.type, ...found };
  if (isLenient) rule = lenient(rule);
  if (isNullable) rule = orNull(rule);
  return rule;
}

const noRule: Rule = { read: () => undefined, describe: () => '' };

/** The rule for a member. */
function kindOf(member: MemberSchema, isLenient: boolean): Rule {
  const { type, format = '', enum: values, maxLength } = member;
  const formatted = byFormat[format];
  if (values) return oneOf(values);
  if (formatted) return formatted;
  const isKnown = format === '' || Format.Has(format);
  if (type === 'string' && maxLength !== undefined && isKnown) {
    const rule = boundedText({ ...member, maxLength });
    return member[decimalDigits] ? decimal(rule) : rule;
  }
  if (member.properties) return nested(member as TObject, isLenient);
  if (member.items && member.maxItems !== undefined)
    return several(member, isLenient);
  if (!type) return anyJson;
  if (type === 'boolean') return trueOrFalse;
  if (type === 'number') return finite(member);
  return (type === 'integer' && integer(member)) || noRule;
}

/** In texts, too. */
function lenient(rule: Rule): Rule {
  const { parse, read, describe } = rule;
  if (!parse) return { ...rule, isLenient: true };
  return {
    ...rule,
    isLenient: true,
    read: (value) => read(typeof value === 'string' ? parse(value) : value),
    describe(value) {
      const isNear = parse === int64FromText && isAlmostInteger(value);
      return `${describe(value)}${isNear ? ', in plain digits' : ''}`;
    },
  };
}

function orNull(rule: Rule): Rule {
  return {
    ...rule,
    read: (value, ...at) => (value === null ? null : rule.read(value, ...at)),
    describe: (value) => `${rule.describe(value)}, or null`,
  };
}

function nested(schema: TObject, isLenient: boolean): Rule {
  const read = readerOf(schema, isLenient);
  return {
    keywords: ['properties', 'required', 'additionalProperties'],
    hasPlaces: true,
    describe: () => 'an object',
    read(value, place = '', faults = []) {
      if (isRecord(value)) return read(value, `${place}.`, faults);
      return undefined;
    },
  };
}

/** An object that is read as its error when it is invalid. */
function separate(schema: TObject, isLenient: boolean): Rule {
  const read = validator(schema, { isLenient });
  return {
    ...nested(schema, isLenient),
    isLenient,
    read(value) {
      if (!isRecord(value)) return undefined;
      try {
        return read(value);
      } catch (error) {
        return error;
      }
    },
  };
}

const trueOrFalse: Rule = {
  describe: () => 'true or false',
  read: (value) => onlyIf(typeof value === 'boolean', value),
  parse: (text) => [true, false].find((one) => `${one}` === text),
};

function several(schema: MemberSchema, isLenient: boolean): Rule {
  const { minItems: least = 0, maxItems: most = 0 } = schema;
  const ruleOfItems = schema[isSeparate] ? separate : ruleOf;
  const rule = ruleOfItems(schema.items as TObject, isLenient);
  const valuesOf = (value: unknown) => {
    if (Array.isArray(value)) return value;
    // In a query string, a single value is no array.
    return isLenient && value !== null ? [value] : undefined;
  };
  const isBounded = ({ length }: unknown[]) =>
    length >= least && length <= most;
  const longest = most * (rule.maxLength ?? 0);
  const kind = rule.hasPlaces ? 'an array of ' : '';
  return {
    keywords: ['items', 'minItems', 'maxItems', isSeparate],
    isList: true,
    hasPlaces: true,
    // The texts of a query are on no page.
    maxLength: isLenient ? 0 : longest,
    describe(value) {
      const given = valuesOf(value);
      if (!given) return 'an array';
      // Too many are refused by their number, unread.
      const read = isBounded(given) ? given : [];
      const wrong = read.find((one) => rule.read(one) === undefined);
      return `${kind}${least} to ${most} values, each ${rule.describe(wrong)}`;
    },
    read(value, place = '', faults = []) {
      const values = valuesOf(value);
      if (!values || !isBounded(values)) return undefined;
      if (rule.hasPlaces)
        return values.map((one, at) =>
          readAt(`${place}[${at}]`, rule, one, faults),
        );
      const read = values.map((one) => rule.read(one));
      return onlyIf(!read.includes(undefined), read);
    },
  };
}

function oneOf(values: string[]): Rule {
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

/** @returns undefined for an integer without bounds */
function integer(schema: MemberSchema): Rule | undefined {
  const { format, multipleOf: step = 1, ...bounds } = schema;
  const { exclusiveMinimum: above = NaN, exclusiveMaximum: below = NaN } =
    bounds;
  const { minimum: least = above + 1, maximum: most = below - 1 } = bounds;
  const isInt64 = format === 'int64';
  const isBounded = least <= most && !format;
  if (!isInt64 && !isBounded) return undefined;
  const min = Number.isNaN(least) ? int64.min : BigInt(least);
  const max = Number.isNaN(most) ? int64.max : BigInt(most);
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

/** A text such as `5.0` or `+5` names an integer within or beyond bounds. */
function isAlmostInteger(value: unknown) {
  const isOther = typeof value === 'string' && !/^(0|-?[1-9]\d*)$/.test(value);
  return isOther && Number(value) % 1 === 0;
}

function finite(bounds: MemberSchema): Rule {
  const given = ofNumbers.filter((name) => bounds[name] !== undefined);
  const words = given.map(
    (name) => `${conditions[name].words} ${bounds[name]}`,
  );
  return {
    keywords: ofNumbers,
    describe: () => ['a number', ...words].join(', '),
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

function boundedText({
  minLength = 0,
  maxLength,
  pattern,
  format,
  examples,
}: MemberSchema & { maxLength: number }): Rule {
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

/** One text for each number: 1.10 is 1.1, and -0.0 is 0. */
function decimal({ read, ...rule }: Rule): Rule {
  const shortest = (text: string) =>
    text.replace(/\.0*$|(\.\d*?)0+$/, '$1').replace(/^-0$/, '0');
  return {
    ...rule,
    read(value) {
      if (read(value) === undefined) return undefined;
      return shortest(`${value}`);
    },
  };
}

const ofFormats = ['format', 'maxLength'];

const rfc3339 =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;
const isRfc3339 = (value: unknown): value is string =>
  typeof value === 'string' && rfc3339.test(value);
const firstYear = Date.parse('0001-01-01T00:00:00Z');
const lastYear = Date.parse('9999-12-31T23:59:59.999Z');

/** Parses RFC 3339, section 5.6, to a Date of the years 1 to 9999. */
const dateTime: Rule = {
  keywords: ofFormats,
  describe(value) {
    const article = isRfc3339(value) ? 'an existing' : 'a';
    return `${article} date and time like 2030-12-05T00:00:00Z`;
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

const anyJson: Rule = {
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
function inDigits(_name: string, value: unknown): unknown {
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
function formatted(words: string, isRight: (text: string) => boolean): Rule {
  return {
    keywords: ofFormats,
    describe: () => words,
    read(value) {
      if (typeof value !== 'string' || !isRight(value)) return undefined;
      return value.toLowerCase();
    },
  };
}

/** Rules of formats that need no `maxLength`. */
const byFormat: Record<string, Rule> = {
  'date-time': dateTime,
  // PostgreSQL has no year 0.
  date: formatted(
    'an existing date like 2030-12-05',
    (day) => Format.IsDate(day) && day > '0001',
  ),
  uuid: formatted(
    'a UUID like 0190163d-8694-739b-aea5-966c26f8ad91',
    Format.IsUuid,
  ),
};
