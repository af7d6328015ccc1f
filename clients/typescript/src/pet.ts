import type { components } from './generated/openapi.ts';

interface IdTypes {
  bigint: bigint;
  string: string;
}

/** What ids are: `bigint`, or `string`, of decimal digits. */
export type IdType = keyof IdTypes;

export type Id<Ids extends IdType> = IdTypes[Ids];

type PetOfContract = components['schemas']['Pet'];

/**
 * An animal of the catalogue: its members come from the contract. Its ids are
 * all `bigint`, even small ones, or all strings.
 */
export type Pet<Ids extends IdType = 'bigint'> = {
  [Member in keyof PetOfContract]: PetOfContract[Member] extends bigint
    ? Id<Ids>
    : PetOfContract[Member];
};

/** Order of a list: by ascending id, or newest first. */
export type Sort = 'id' | 'id_desc';

/** Availability of an animal. */
export type PetStatus = components['schemas']['PetStatus'];

/**
 * An int64. A string contains its digits. A `number` is accepted up to 2^53 -
 * 1, because a larger one may be rounded.
 */
export type Int64 = bigint | number | string;

type Input = components['schemas']['NewPet'];

/** An animal to be added; `status` is `available` when omitted. */
export type NewPet = Omit<Input, 'categoryId' | 'status'> & {
  categoryId: Int64;
  status?: PetStatus | undefined;
};

/**
 * @throws RangeError for a number that is not a safe integer, and text that is
 *   not digits
 */
export function int64(name: string, value: Int64): bigint {
  if (
    typeof value === 'string'
      ? /^-?\d+$/.test(value)
      : typeof value === 'bigint' || Number.isSafeInteger(value)
  ) {
    return BigInt(value);
  }
  const exact =
    'pass a bigint, for example 9007199254740993n, or its digits as a string';
  throw new RangeError(
    `${name} is not a whole number up to 2^53 - 1: ${exact}.`,
  );
}

/** Checks the ids, with which callers compute. */
export const isPet = (it: unknown): it is Pet =>
  typeof Object(it).id === 'bigint' &&
  typeof Object(it).categoryId === 'bigint';

export const isPets = (it: unknown): it is Pet[] =>
  Array.isArray(it) && it.every(isPet);

/** Converts the ids of an animal to the requested type. */
export function withIds<Ids extends IdType>(ids: Ids, pet: Pet): Pet<Ids> {
  return Object.fromEntries(
    Object.entries(pet).map(([name, value]) => [name, idAs(ids, value)]),
  ) as Pet<Ids>;
}

/** Leaves all other values unchanged. */
export function idAs(ids: IdType, value: unknown): unknown {
  return ids === 'string' && typeof value === 'bigint' ? `${value}` : value;
}
