import { InexactNumber, isRecord } from '@animal-store/exact-json';
import type { Static, TObject, TSchema } from 'typebox';
import { badInput, orError, reportFault } from '../errors.ts';
import { int64FromText } from './int64.ts';
import { kindIn } from './kinds.ts';
import { assertPageFits } from './page-size.ts';
import {
  isSeparate,
  type MemberSchema,
  onlyIf,
  type Rule,
  unwrapped,
} from './rules.ts';

// A TypeBox schema describes each input once: OpenAPI shows it, `validator`
// validates by it, and TypeScript derives its type from it. A schema with parts
// that cannot be validated is rejected at start.

declare const isValidated: unique symbol;

/** A validated value: a service accepts nothing else. */
export type Validated<Value> = Value & { readonly [isValidated]: true };

/** The validated input of a schema: what a service accepts. */
export type Input<Schema extends TSchema> = Validated<Static<Schema>>;

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
  return (input: unknown) => {
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
    // A null counts as absent where both are one input: of a member that may be
    // null and has no other default; in GraphQL, whose clients send null for
    // what they leave out, of one that may not be null. Not in a change, where
    // null is a value, nor of a required member.
    const mayBeNull = rule.read(null) === null;
    const isSame = mayBeNull && otherwise === undefined;
    const isIgnored = !mayBeNull && isLenient;
    const isAbsentAsNull = !isChange && !isRequired && (isSame || isIgnored);
    return { name, rule, isRequired, otherwise, isAbsentAsNull };
  });
  // The texts of a query are on no page, and `listQuery` checks those of items.
  if (!isLenient)
    assertPageFits(members.map(({ name, rule }) => ({ ...rule, name })));
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

const annotations = [
  '$id',
  'type',
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
];
/** @throws Error for a schema with an unsupported keyword or without a bound */
function ruleOf(schema: TSchema, isLenient: boolean, name = '') {
  const { member, isNullable } = unwrapped(schema);
  const found = ruleFor(member, isLenient);
  const known = [...annotations, ...(found.keywords ?? [])];
  const unchecked = Object.keys(member).filter((one) => !known.includes(one));
  const isUnknown = found === noRule;
  if (isUnknown || unchecked.length > 0) {
    const what = isUnknown ? '' : `${unchecked.join(' and ')} of `;
    reportFault(
      `No rule checks ${what}${name} ${JSON.stringify(member)}: bound it (maxLength, minimum and maximum, maxItems), or give it a kind (ofKind).`,
    );
  }
  let rule: Rule = { type: member.type, ...found };
  if (isLenient) rule = lenient(rule);
  if (isNullable) rule = orNull(rule);
  return rule;
}

const noRule: Rule = { read: () => undefined, describe: () => '' };

/** The rule for a member. */
function ruleFor(member: MemberSchema, isLenient: boolean): Rule {
  if (member.properties) return nested(member as TObject, isLenient);
  if (member.items && member.maxItems !== undefined)
    return several(member, isLenient);
  return kindIn(member)?.rule(member) ?? noRule;
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
      return isRecord(value) ? orError(() => read(value)) : undefined;
    },
  };
}

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
  const kind = rule.hasPlaces ? 'an array of ' : '';
  return {
    keywords: ['items', 'minItems', 'maxItems', isSeparate],
    isList: true,
    hasPlaces: true,
    maxLength: most * (rule.maxLength ?? 0),
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

/** A text such as `5.0` or `+5` names an integer within or beyond bounds. */
function isAlmostInteger(value: unknown) {
  const isOther = typeof value === 'string' && !/^(0|-?[1-9]\d*)$/.test(value);
  return isOther && Number(value) % 1 === 0;
}
