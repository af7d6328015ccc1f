import { InexactNumber } from '@animal-store/exact-json';
import type { Static, TObject, TSchema } from 'typebox';
import { StoreError } from '../errors.ts';
import { ruleOf } from './rules.ts';

// A TypeBox schema describes each input once: OpenAPI shows it, `validator` validates by it, and TypeScript derives its
// type from it. A schema with parts that cannot be validated is rejected at start.

declare const isChecked: unique symbol;

/** A validated value: a service accepts nothing else. */
export type Validated<Value> = Value & { readonly [isChecked]: true };

/** The validated input of a schema: what a service accepts. */
export type Input<Schema extends TSchema> = Validated<Static<Schema>>;

// 100 items with this many characters take up to 16 MiB, because JSON writes a character as six bytes at most. No later
// code counts bytes.
const maxItemLength = 27_962;

/**
 * Compiles the schema of an object.
 *
 * @param isLenient for query strings and GraphQL: integers may be decimal digits, and null in an optional member that
 *   cannot be null counts as absent
 * @returns a function that throws StoreError BAD_USER_INPUT, naming every fault. It drops members that the schema does
 *   not name, unless it is closed (`additionalProperties: false`), and applies defaults to absent ones.
 * @throws Error for a schema with parts that cannot be validated, or whose texts could make a page larger than 16 MiB
 */
export function validator<Schema extends TObject>(schema: Schema, { isLenient = false } = {}) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(([name, member]) => ({
    name,
    rule: ruleOf(member, isLenient),
    isRequired: required.has(name),
    default: (member as { default?: unknown }).default,
  }));
  // Of a change: what it does not name stays as it is, so nothing that it names may be ignored.
  const isClosed = (schema as { additionalProperties?: boolean }).additionalProperties === false;
  const length = members.reduce((sum, { rule }) => sum + (rule.maxLength ?? 0), 0);
  if (length > maxItemLength) {
    const texts = members.filter(({ rule }) => rule.maxLength).map(({ name }) => name);
    throw new Error(
      `A page could exceed 16 MiB: ${texts.join(' and ')} have up to ${length} characters in all; at most ${maxItemLength} are allowed.`,
    );
  }
  return (input: unknown): Validated<Static<Schema>> => {
    if (!isRecord(input)) {
      throw new StoreError('BAD_USER_INPUT', 'The body must be a JSON object.');
    }
    const unknown = isClosed ? Object.keys(input).filter((name) => !Object.hasOwn(schema.properties, name)) : [];
    const faults = unknown.map((name) => `${name} cannot be changed`);
    const output: Record<string, unknown> = {};
    for (const { name, rule, isRequired, default: otherwise } of members) {
      const given = Object.hasOwn(input, name) ? input[name] : undefined;
      const isNothing = given === null && isLenient && !isClosed && !isRequired && rule.read(null) !== null;
      const value = given === undefined || isNothing ? otherwise : given;
      if (value === undefined && !isRequired) continue;
      const read = value === undefined ? undefined : rule.read(value);
      if (read !== undefined) output[name] = read;
      else if (value === undefined) faults.push(`${name} is required`);
      // Only a query string turns a repeated member into an array.
      else if (isLenient && Array.isArray(value)) faults.push(`${name} must be given once`);
      else
        faults.push(
          `${name} must be ${rule.describe(value)}${isLenient && typeof value === 'string' ? '' : butNot(value, rule.type)}`,
        );
    }
    if (faults.length > 0) throw new StoreError('BAD_USER_INPUT', `${faults.join('; ')}.`);
    return output as Validated<Static<Schema>>;
  };
}

/** Names the type of a value of the wrong type: without it the message about `"5"` states a rule that 5 meets. */
function butNot(value: unknown, expected: string | undefined): string {
  if (value === null) return ', not null';
  const isNumber = typeof value === 'bigint' || value instanceof InexactNumber;
  const type = isNumber ? 'number' : Array.isArray(value) ? 'array' : typeof value;
  if (type === expected?.replace('integer', 'number')) return '';
  return `, not ${/^[ao]/.test(type) ? 'an' : 'a'} ${type}`;
}

/** True for a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
