import type { components } from './generated/openapi.ts';

/** An animal of the catalogue. `id` and `categoryId` are always `bigint`, small ones too. */
export type Pet = components['schemas']['Pet'];

/** Availability of an animal. */
export type PetStatus = components['schemas']['PetStatus'];

/** An int64. A `number` is taken up to 2^53 - 1: beyond, it may have been rounded already. */
export type Int64 = bigint | number;

type Input = components['schemas']['NewPet'];

/** An animal to be added; `status` is `available` when omitted. */
export type NewPet = Omit<Input, 'categoryId' | 'status'> & { categoryId: Int64 } & Partial<Pick<Input, 'status'>>;

/** @throws RangeError for a number that is not a safe integer */
export function int64(name: string, value: Int64): bigint {
  if (typeof value === 'bigint') return value;
  if (Number.isSafeInteger(value)) return BigInt(value);
  throw new RangeError(`${name} is not a whole number up to 2^53 - 1: pass a bigint, for example 9007199254740993n.`);
}

/** Whether it is one, by what a caller would compute with. */
export const isPet = (it: unknown): it is Pet =>
  typeof Object(it).id === 'bigint' && typeof Object(it).categoryId === 'bigint';

export const isPets = (it: unknown): it is Pet[] => Array.isArray(it) && it.every(isPet);
