import { isDeepStrictEqual } from 'node:util';
import type { Client, Reply } from './client.ts';
import { broken, closed, refused, type Tally, unknown } from './tally.ts';

export type Answer = 'answered' | 'failed';

interface Pet {
  id: number;
  name: string;
  categoryId: number;
  status: string;
}

/** Reads pets, and compares every response with the acknowledged creations. */
export class Reader {
  readonly #client: Client;
  readonly #tally: Tally;
  readonly #isConsistent: boolean;

  constructor(client: Client, tally: Tally, isConsistent: boolean) {
    this.#client = client;
    this.#tally = tally;
    this.#isConsistent = isConsistent;
  }

  /**
   * The pet that this client has just created must be found by its id, and be
   * listed.
   */
  async checkOwn(pet: Pet, created: string): Promise<Answer> {
    const isOwn = (text: string) => isDeepStrictEqual(JSON.parse(text), pet);
    if (!isOwn(created)) this.#tally.stale.push(`created as ${created}`);
    const found = await this.#find(pet.id);
    if (found !== undefined && !isOwn(found))
      this.#tally.stale.push(`own pet ${pet.id} found as: ${found}`);
    const path = `/v1/pets?limit=1&after=${pet.id - 1}`;
    const listed = await this.record(this.#client.get(path), 200);
    if (listed !== undefined && !isDeepStrictEqual(JSON.parse(listed), [pet])) {
      this.#tally.stale.push(`own pet ${pet.id} listed as: ${listed}`);
    }
    return found === undefined || listed === undefined ? 'failed' : 'answered';
  }

  readRandom(): Promise<Answer> {
    return Math.random() < 0.5 ? this.#findRandom() : this.#listRandom();
  }

  async #findRandom(): Promise<Answer> {
    const id = this.#tally.randomId(
      this.#isConsistent ? undefined : this.#client.origin,
    );
    if (id === undefined) return this.#listRandom();
    const found = await this.#find(id);
    const name = this.#tally.acknowledged.get(id)?.name;
    if (found !== undefined && JSON.parse(found).name !== name)
      this.#tally.stale.push(`${name} found as: ${found}`);
    return found === undefined ? 'failed' : 'answered';
  }

  async #listRandom(): Promise<Answer> {
    const limit = 1 + Math.floor(Math.random() * 30);
    const status = [undefined, 'available', 'pending', 'sold'][
      Math.floor(Math.random() * 4)
    ];
    const after = Math.random() < 0.5 ? (this.#tally.randomId() ?? 0) : 0;
    const path = `/v1/pets?limit=${limit}&after=${after}${status ? `&status=${status}` : ''}`;
    const listed = await this.record(this.#client.get(path), 200);
    if (listed === undefined) return 'failed';
    const pets: Pet[] = JSON.parse(listed);
    const isRight = pets.every(
      (pet, at) =>
        pet.id > (pets[at - 1]?.id ?? after) &&
        (!status || pet.status === status),
    );
    if (!isRight || pets.length > limit)
      this.#tally.stale.push(`${path} listed as: ${listed}`);
    return 'answered';
  }

  /** 404 is accepted as a response, because the caller reports it as stale. */
  #find(id: number): Promise<string | undefined> {
    return this.record(this.#client.get(`/v1/pets/${id}`), 200, undefined, 404);
  }

  /**
   * Counts a request and its result.
   *
   * @param name of the pet that the request creates
   * @returns the body of a response with an expected status; undefined
   *   otherwise
   */
  async record(
    request: Promise<Reply>,
    expected: number,
    name?: string,
    other?: number,
  ): Promise<string | undefined> {
    const tally = this.#tally;
    tally.requests++;
    const reply = await request;
    if (reply.kind === 'hung') tally.hung++;
    else if (reply.kind === 'broken') tally.fail(broken);
    else if (reply.kind === 'closed') tally.fail(closed);
    else if (reply.status === expected || reply.status === other)
      return reply.text;
    else if (reply.status !== 503)
      tally.fail(`${reply.status} ${reply.text.slice(0, 200)}`);
    else {
      tally.fail(reply.retryAfter ? refused : unknown);
      if (reply.retryAfter && name) tally.refusedNames.add(name);
    }
    return undefined;
  }
}
