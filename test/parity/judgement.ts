import type { Face, SeenPet } from '../support/faces.ts';
import type { Expected } from './model.ts';

const statuses = ['available', 'pending', 'sold'];
const int64 = { min: -9223372036854775808n, max: 9223372036854775807n };
const int64Rule = `an integer between ${int64.min} and ${int64.max}`;

/** Judges the values of one call as the decision table does: REST reads text or a JSON body, GraphQL typed variables. */
export class Judgement {
  readonly #face: Face['name'];
  readonly #faults: string[] = [];
  readonly #variables: string[] = [];

  constructor(face: Face['name']) {
    this.#face = face;
  }

  limit(value: unknown): bigint | undefined {
    const given = this.#query(value, 'limit', isInt);
    return this.#rule(given, 'limit', 'an integer between 1 and 100', (number) => number >= 1n && number <= 100n);
  }

  after(value: unknown): bigint | undefined {
    return this.#rule(this.#query(value, 'after', isId), 'after', int64Rule, inInt64);
  }

  status(value: unknown, variable: string): string | undefined {
    const given = this.#query(value, variable, (typed) => statuses.includes(typed as string));
    if (given !== undefined && !statuses.includes(`${given}`)) {
      this.#faults.push(`status must be one of ${statuses.join(', ')}`);
    }
    return given as string | undefined;
  }

  /** @returns the id as text; both faces find nothing for one that is no int64. */
  id(value: unknown): string {
    if (this.#face === 'GraphQL' && !isId(value)) this.#variables.push('id');
    return `${value}`;
  }

  newPet(value: unknown): Omit<SeenPet, 'id'> {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    const { name, categoryId, status = 'available', ...others } = (isObject ? value : {}) as Record<string, unknown>;
    if (this.#face === 'GraphQL') {
      const typed = isObject && typeof name === 'string' && isId(categoryId) && statuses.includes(status as string);
      if (!typed || Object.keys(others).length > 0) this.#variables.push('input');
    } else if (!isObject) {
      this.#faults.push('The body must be a JSON object');
    }
    if (isObject) this.#judgeMembers(name, categoryId, status);
    return { name: `${name}`, categoryId: `${categoryId}`, status: `${status}` };
  }

  #judgeMembers(name: unknown, categoryId: unknown, status: unknown): void {
    if (typeof name !== 'string') this.#faults.push(name === undefined ? 'name is required' : 'name must be a string');
    else if (/\0|\p{Surrogate}/u.test(name)) this.#faults.push('name must be free of U+0000 and of lone surrogates');
    if (categoryId === undefined) this.#faults.push('categoryId is required');
    else if (typeof categoryId === 'string' && this.#face === 'REST') {
      this.#faults.push(`categoryId must be ${int64Rule}`);
    } else this.#rule(categoryId, 'categoryId', int64Rule, inInt64);
    if (!statuses.includes(status as string)) this.#faults.push(`status must be one of ${statuses.join(', ')}`);
  }

  /** A query parameter is text; a GraphQL variable has a type that may refuse it, and null is absent. */
  #query(value: unknown, variable: string, hasType: (typed: unknown) => boolean): unknown {
    if (this.#face === 'REST' || value === undefined) return value;
    if (value === null) return undefined;
    if (!hasType(value)) this.#variables.push(variable);
    return value;
  }

  #rule(value: unknown, member: string, rule: string, holds: (number: bigint) => boolean): bigint | undefined {
    if (value === undefined) return undefined;
    const text = typeof value === 'object' ? '' : `${value}`;
    const number = /^(?:0|-?[1-9]\d*)$/.test(text) ? BigInt(text) : undefined;
    if (number === undefined || !holds(number)) this.#faults.push(`${member} must be ${rule}`);
    return number;
  }

  refusedByType(): Extract<Expected<never>, { code: string }> | undefined {
    if (this.#variables.length === 0) return undefined;
    return { code: 'BAD_USER_INPUT', status: 400, message: new RegExp(`"\\$(?:${this.#variables.join('|')})"`) };
  }

  failure(): Extract<Expected<never>, { code: string }> | undefined {
    if (this.#faults.length === 0) return this.refusedByType();
    const message = `${this.#faults.join('; ')}.`;
    return this.refusedByType() ?? { code: 'BAD_USER_INPUT', status: 400, message };
  }
}

const isInt = (value: unknown) =>
  (typeof value === 'bigint' || Number.isInteger(value)) && Number(value) >= -(2 ** 31) && Number(value) < 2 ** 31;

const isId = (value: unknown) => typeof value === 'string' || typeof value === 'bigint' || Number.isSafeInteger(value);

const inInt64 = (number: bigint) => number >= int64.min && number <= int64.max;
