import type { Api, SeenPet } from '../support/apis.ts';
import { expect } from '../support/jest.ts';

/**
 * The expected response. Of an error that only GraphQL's types can raise, the
 * message need only name the variable.
 */
type Expected =
  | { data: unknown }
  | { code: string; status: number; message: unknown };
export type KeyKind = 'write' | 'read' | 'none' | 'unknown' | 'revoked';
type Members = Record<string, unknown>;

const statuses: unknown[] = ['available', 'pending', 'sold'];
const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];

function isWithin(value: unknown, min: bigint, max: bigint): boolean {
  const text = typeof value === 'object' ? '' : `${value}`;
  return (
    /^(?:0|-?[1-9]\d*)$/.test(text) &&
    BigInt(text) >= min &&
    BigInt(text) <= max
  );
}

/** Ends the rule for a text that names an integer in another spelling. */
function spelling(value: unknown): string {
  const isNumber = typeof value === 'string' && Number.isInteger(Number(value));
  return isNumber && !/^(?:0|-?[1-9]\d*)$/.test(value)
    ? ', in plain digits'
    : '';
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'object')
    return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'bigint' ? 'a number' : `a ${typeof value}`;
}

function faultOfInteger(
  value: unknown,
  min: bigint,
  max: bigint,
): string | undefined {
  return isWithin(value, min, max)
    ? undefined
    : `must be an integer between ${min} and ${max}${spelling(value)}`;
}

/** The decision table: the fault of a member. */
const faultOf: Record<string, (value: unknown) => string | undefined> = {
  limit: (value) => faultOfInteger(value, 1n, 100n),
  after: (value) => faultOfInteger(value, least, most),
  categoryId: (value) => faultOfInteger(value, least, most),
  status(value) {
    const isNear =
      typeof value === 'string' &&
      statuses.includes(value.trim().toLowerCase());
    const rule = `must be one of ${statuses.join(', ')}`;
    return statuses.includes(value)
      ? undefined
      : `${rule}${isNear ? ', spelled exactly so' : ''}`;
  },
  name(value) {
    if (typeof value !== 'string') return 'must be a string';
    return /\0|\p{Surrogate}/u.test(value)
      ? 'must be free of U+0000 and of lone surrogates'
      : undefined;
  },
};

const isId = (value: unknown) =>
  typeof value === 'string' ||
  typeof value === 'bigint' ||
  Number.isInteger(value);
/** The types of GraphQL, which refuse before the service does. */
const isOfType: Record<string, (value: unknown) => boolean> = {
  limit: (value) =>
    (typeof value === 'bigint' || Number.isInteger(value)) &&
    isWithin(value, -(2n ** 31n), 2n ** 31n - 1n),
  after: isId,
  categoryId: isId,
  status: (value) => statuses.includes(value),
  name: (value) => typeof value === 'string',
};

const refused = (code: string, status: number, message: unknown) => ({
  code,
  status,
  message,
});
const badInput = (message: unknown) => refused('BAD_USER_INPUT', 400, message);
const mistyped = (...variables: string[]) =>
  variables.length > 0
    ? badInput(expect.stringMatching(`"\\$(?:${variables.join('|')})"`))
    : undefined;

/**
 * The specification and the decision table as a program: one array of animals,
 * no database, no code of the service. It returns the expected response of
 * either API. `created` adds animals, because only the service assigns ids.
 */
export class Model {
  readonly pets: SeenPet[] = [];
  /** Ids always ascend, also beyond animals that were deleted. */
  #lastId = 0n;

  list(api: Api['name'], key: KeyKind, query: Members): Expected {
    // A variable that is null is absent.
    const given = Object.entries(query).filter(
      ([, value]) => api === 'REST' || value !== null,
    );
    const others = given.filter(
      ([name, value]) => api === 'GraphQL' && !isOfType[name]?.(value),
    );
    const faults = ['status', 'limit', 'after'].flatMap((name) => {
      const [, value] = given.find(([one]) => one === name) ?? [];
      const fault =
        value === undefined
          ? undefined
          : faultOf[name]?.(
              name === 'status' || api === 'REST' ? `${value}` : value,
            );
      return fault ? [`${name} ${fault}`] : [];
    });
    const { status, limit = 20, after } = Object.fromEntries(given);
    return (
      unauthenticated(key) ??
      mistyped(...others.map(([name]) => name)) ??
      (faults.length > 0
        ? badInput(`${faults.join('; ')}.`)
        : { data: this.page(status, Number(limit), after) })
    );
  }

  /** The animals with the status and after the id, at most `limit`. */
  page(status: unknown, limit: number, after?: unknown): SeenPet[] {
    const isShown = (pet: SeenPet) =>
      (after === undefined || BigInt(pet.id) > BigInt(`${after}`)) &&
      (status === undefined || pet.status === status);
    return this.pets.filter(isShown).slice(0, limit);
  }

  /** Expects any id, because only the service assigns it. */
  create(api: Api['name'], key: KeyKind, input: unknown): Expected {
    const isObject =
      typeof input === 'object' && input !== null && !Array.isArray(input);
    const {
      name,
      categoryId,
      status = 'available',
      ...others
    } = (isObject ? input : {}) as Members;
    const pet: Members = { name, categoryId, status };
    const hasTypes = Object.keys(pet).every((member) =>
      isOfType[member]?.(pet[member]),
    );
    const isTyped = isObject && hasTypes && Object.keys(others).length === 0;
    const faults = Object.entries(pet).flatMap(([member, value]) => {
      if (value === undefined) return [`${member} is required`];
      // In a body of REST, a string is no integer.
      const isText =
        member === 'categoryId' && typeof value === 'string' && api === 'REST';
      const fault = faultOf[member]?.(isText ? 'none' : value);
      const isOfKind =
        typeof value === 'string'
          ? !isText
          : member === 'categoryId' && typeOf(value) === 'a number';
      return fault
        ? [`${member} ${fault}${isOfKind ? '' : `, not ${typeOf(value)}`}`]
        : [];
    });
    if (!isObject) faults.splice(0, 3, 'The body must be a JSON object');
    return (
      unauthenticated(key) ??
      // A value that its GraphQL type refuses never reaches the field and its
      // scope; REST checks the scope first.
      mistyped(...(api === 'GraphQL' && !isTyped ? ['input'] : [])) ??
      (key === 'read'
        ? refused(
            'FORBIDDEN',
            403,
            'This needs an API key with the scope "pets:write".',
          )
        : undefined) ??
      (faults.length > 0 ? badInput(`${faults.join('; ')}.`) : undefined) ?? {
        data: {
          id: expect.any(String),
          name: `${name}`,
          categoryId: `${categoryId}`,
          status: `${status}`,
        },
      }
    );
  }

  /** Both APIs find no animal with an id that is no int64. */
  find(api: Api['name'], key: KeyKind, id: unknown): Expected {
    const variables = api === 'GraphQL' && !isId(id) ? ['id'] : [];
    const data = this.pets.find((pet) => pet.id === `${id}`) ?? null;
    return unauthenticated(key) ?? mistyped(...variables) ?? { data };
  }

  /**
   * Adds the animals that the service has created. Each id must be greater than
   * all before it.
   */
  created(...newcomers: SeenPet[]): void {
    for (const pet of newcomers.sort((a, b) =>
      BigInt(a.id) < BigInt(b.id) ? -1 : 1,
    )) {
      expect(BigInt(pet.id)).toBeGreaterThan(this.#lastId);
      this.#lastId = BigInt(pet.id);
      this.pets.push(pet);
    }
  }
}

function unauthenticated(key: KeyKind) {
  if (key === 'write' || key === 'read') return undefined;
  const missing = 'An API key is required: Authorization: Bearer <API_KEY>.';
  return refused(
    'UNAUTHENTICATED',
    401,
    key === 'none' ? missing : 'The API key is not valid.',
  );
}
