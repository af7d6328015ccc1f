import type { Face, Outcome, SeenPet } from '../support/faces.ts';
import { Judgement } from './judgement.ts';

/** What a face must answer. A failure that only one face can have names the variable it is about, in words of its own. */
export type Expected<Data> = { data: Data } | { code: string; status: number; message: string | RegExp };
export type KeyKind = 'write' | 'read' | 'none' | 'unknown' | 'revoked';
type Members = Record<string, unknown>;

/**
 * The specification and the decision table as a program: one array of animals, no database, nothing of the service.
 * It answers a call as the given face must; what is created is told to it, because only the service gives ids.
 */
export class Model {
  readonly pets: SeenPet[] = [];
  /** Ids ascend for ever, also over animals that are gone. */
  #lastId = 0n;

  list(face: Face['name'], key: KeyKind, query: Members): Expected<SeenPet[]> {
    const refusal = unauthenticated(key);
    if (refusal) return refusal;
    const judge = new Judgement(face);
    const status = judge.status(query.status, 'status');
    const limit = judge.limit(query.limit) ?? 20n;
    const after = judge.after(query.after);
    return judge.failure() ?? { data: this.page(status, limit, after) };
  }

  /** The animals with the status and after the id, at most `limit`. */
  page(status: string | undefined, limit: bigint, after: bigint | undefined): SeenPet[] {
    const behind = (pet: SeenPet) => after === undefined || BigInt(pet.id) > after;
    return this.pets
      .filter((pet) => behind(pet) && (status === undefined || pet.status === status))
      .slice(0, Number(limit));
  }

  /** The id in the data is a placeholder for whatever `created` accepts. */
  create(face: Face['name'], key: KeyKind, newPet: unknown): Expected<SeenPet> {
    const refusal = unauthenticated(key);
    if (refusal) return refusal;
    const judge = new Judgement(face);
    const pet = judge.newPet(newPet);
    const forbidden = key === 'read' ? readOnly : undefined;
    // A value that its GraphQL type refuses never reaches the field and its scope; REST looks at the scope first.
    const coercion = face === 'GraphQL' ? judge.refusedByType() : undefined;
    return coercion ?? forbidden ?? judge.failure() ?? { data: { id: '', ...pet } };
  }

  find(face: Face['name'], key: KeyKind, id: unknown): Expected<SeenPet | null> {
    const refusal = unauthenticated(key);
    if (refusal) return refusal;
    const judge = new Judgement(face);
    const text = judge.id(id);
    return judge.failure() ?? { data: this.pets.find((pet) => pet.id === text) ?? null };
  }

  /** Takes in what the service has created. @throws Error when an id is not greater than every one before */
  created(...newcomers: SeenPet[]): void {
    for (const pet of newcomers.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))) {
      if (BigInt(pet.id) <= this.#lastId) throw new Error(`the id ${pet.id} does not follow ${this.#lastId}`);
      this.#lastId = BigInt(pet.id);
      this.pets.push(pet);
    }
  }
}

const readOnly = { code: 'FORBIDDEN', status: 403, message: 'This needs an API key with the scope "write".' };

function unauthenticated(key: KeyKind) {
  if (key === 'write' || key === 'read') return undefined;
  const message =
    key === 'none' ? 'An API key is required: Authorization: Bearer <API_KEY>.' : 'The API key is not valid.';
  return { code: 'UNAUTHENTICATED', status: 401, message };
}

/** @throws Error that says in what an answer differs from what the model expects */
export function assertAgrees(actual: Outcome<unknown>, expected: Expected<unknown>): void {
  const differs = () => {
    const wanted = 'message' in expected ? { ...expected, message: `${expected.message}` } : expected;
    return new Error(`the model expects ${JSON.stringify(wanted)}, the answer is ${JSON.stringify(actual)}`);
  };
  if ('data' in expected) {
    if (!('data' in actual) || canonical(actual.data) !== canonical(expected.data)) throw differs();
    return;
  }
  if (!('code' in actual) || actual.code !== expected.code || actual.status !== expected.status) throw differs();
  const { message } = expected;
  if (typeof message === 'string' ? actual.message !== message : !message.test(actual.message)) throw differs();
}

function canonical(data: unknown): string {
  const one = (pet: SeenPet | null) => pet && [pet.id, pet.name, pet.categoryId, pet.status];
  return JSON.stringify(Array.isArray(data) ? data.map(one) : one(data as SeenPet | null));
}
