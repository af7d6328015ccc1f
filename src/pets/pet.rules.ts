import { StoreError } from '../errors.ts';
import { int64, isInt64 } from '../int64.ts';
import { type Pet, PetStatus } from './pet.entity.ts';

/** Input as a client sent it: any member may be missing or of any type. */
export type Unchecked<T> = { readonly [Member in keyof T]?: unknown };

/** What a new animal is made of. */
export type NewPet = Omit<Pet, 'id'>;

/** Which part of the catalogue a client wants. */
export interface PetQuery {
  /** Only animals with this status; all when undefined. */
  status: PetStatus | undefined;
  /** How many at most, 1 to 100. */
  limit: number;
  /** Only animals whose id is greater; from the beginning when undefined. */
  after: bigint | undefined;
}

export const pageLimit = { min: 1, max: 100, default: 20 } as const;

/**
 * How many items a list may hold, before its `limit` is judged: what is no number is the default, or will be refused.
 * A whole number, which is what quotas count.
 */
export function itemsIn(limit: unknown): number {
  const count = limit === undefined || limit === null ? pageLimit.default : Number(limit);
  return Number.isFinite(count) ? Math.trunc(Math.min(Math.max(count, 0), pageLimit.max)) : pageLimit.max;
}

const int64Rule = `an integer between ${int64.min} and ${int64.max}`;
const statusRule = `one of ${Object.keys(PetStatus).join(', ')}`;
const limitRule = `an integer between ${pageLimit.min} and ${pageLimit.max}`;

/**
 * @param maxNameLength in characters (Unicode code points).
 * @throws StoreError BAD_USER_INPUT that names every fault.
 */
export function checkNewPet(input: unknown, maxNameLength: number): NewPet {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new StoreError('BAD_USER_INPUT', 'The body must be a JSON object.');
  }
  const { name, categoryId, status } = input as Unchecked<NewPet>;
  const faults = new Faults();
  const newPet = {
    name: faults.unless(isNameWithin(maxNameLength), name, 'name', nameRule(name, maxNameLength)),
    categoryId: faults.unless(isInt64, exactInteger(categoryId), 'categoryId', int64Rule),
    status: faults.unless(isPetStatus, status === undefined ? PetStatus.available : status, 'status', statusRule),
  };
  faults.throwIfAny();
  return newPet;
}

/**
 * @param limitName what the client calls `limit`, for the message.
 * @throws StoreError BAD_USER_INPUT that names every fault. `null` (GraphQL) counts as absent.
 */
export function checkPetQuery(query: Unchecked<PetQuery>, limitName: string): PetQuery {
  const status = query.status ?? undefined;
  const after = query.after ?? undefined;
  const faults = new Faults();
  const checked = {
    status: status === undefined ? undefined : faults.unless(isPetStatus, status, 'status', statusRule),
    limit: Number(faults.unless(isLimit, exactInteger(query.limit ?? pageLimit.default), limitName, limitRule)),
    after: after === undefined ? undefined : faults.unless(isInt64, exactInteger(after), 'after', int64Rule),
  };
  faults.throwIfAny();
  return checked;
}

class Faults {
  readonly #messages: string[] = [];

  unless<T>(test: (value: unknown) => value is T, value: unknown, member: string, rule: string): T {
    if (!test(value)) this.#messages.push(value === undefined ? `${member} is required` : `${member} must be ${rule}`);
    return value as T;
  }

  throwIfAny(): void {
    if (this.#messages.length > 0) throw new StoreError('BAD_USER_INPUT', `${this.#messages.join('; ')}.`);
  }
}

/** A number that is a whole one becomes a bigint; one that has lost digits stays what it is and is refused. */
export function exactInteger(value: unknown): unknown {
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value;
}

function isLimit(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= pageLimit.min && value <= pageLimit.max;
}

function isPetStatus(value: unknown): value is PetStatus {
  return typeof value === 'string' && Object.hasOwn(PetStatus, value);
}

// PostgreSQL's text holds every Unicode string but U+0000; a lone surrogate is no character at all.
function isName(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\u0000') && value.isWellFormed();
}

function isNameWithin(maxLength: number) {
  return (value: unknown): value is string => isName(value) && hasAtMost(maxLength, value);
}

/** Characters are Unicode code points, as JSON Schema's `maxLength` counts them: one or two units of a JavaScript string. */
function hasAtMost(maxLength: number, text: string): boolean {
  if (text.length <= maxLength) return true;
  return text.length <= 2 * maxLength && [...text].length <= maxLength;
}

function nameRule(name: unknown, maxLength: number): string {
  if (typeof name !== 'string') return 'a string';
  return isName(name) ? `at most ${maxLength} characters long` : 'free of U+0000 and of lone surrogates';
}
