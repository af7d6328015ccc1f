import { isDeepStrictEqual } from 'node:util';
import type { Client, Reply } from './client.ts';
import { broken, closed, refused, type Tally, unknown } from './tally.ts';

export type Answer = 'answered' | 'failed';

interface Animal {
  id: number;
  name: string;
  categoryId: number;
  status: string;
}

/** Reads, and holds every answer against what has been acknowledged. */
export class Reader {
  readonly #client: Client;
  readonly #tally: Tally;
  readonly #isShared: boolean;

  constructor(client: Client, tally: Tally, isShared: boolean) {
    this.#client = client;
    this.#tally = tally;
    this.#isShared = isShared;
  }

  /** What this client has just created must be there, by its id and in a list. */
  async own(animal: Animal, created: string): Promise<Answer> {
    const isOwn = (text: string) => isDeepStrictEqual(JSON.parse(text), animal);
    if (!isOwn(created)) this.#tally.stale.push(`created as ${created}`);
    const found = await this.#find(animal.id);
    if (found !== undefined && !isOwn(found)) this.#tally.stale.push(`own animal ${animal.id} found as: ${found}`);
    const path = `/v1/pets?limit=1&after=${animal.id - 1}`;
    const listed = await this.count(this.#client.get(path), 200);
    if (listed !== undefined && !isDeepStrictEqual(JSON.parse(listed), [animal])) {
      this.#tally.stale.push(`own animal ${animal.id} listed as: ${listed}`);
    }
    return found === undefined || listed === undefined ? 'failed' : 'answered';
  }

  any(): Promise<Answer> {
    return Math.random() < 0.5 ? this.#anyAnimal() : this.#anyList();
  }

  async #anyAnimal(): Promise<Answer> {
    const id = this.#tally.anyId(this.#isShared ? undefined : this.#client.origin);
    if (id === undefined) return this.#anyList();
    const found = await this.#find(id);
    const name = this.#tally.acknowledged.get(id)?.name;
    if (found !== undefined && JSON.parse(found).name !== name) this.#tally.stale.push(`${name} found as: ${found}`);
    return found === undefined ? 'failed' : 'answered';
  }

  async #anyList(): Promise<Answer> {
    const limit = 1 + Math.floor(Math.random() * 30);
    const status = [undefined, 'available', 'pending', 'sold'][Math.floor(Math.random() * 4)];
    const after = Math.random() < 0.5 ? (this.#tally.anyId() ?? 0) : 0;
    const path = `/v1/pets?limit=${limit}&after=${after}${status ? `&status=${status}` : ''}`;
    const listed = await this.count(this.#client.get(path), 200);
    if (listed === undefined) return 'failed';
    const animals: Animal[] = JSON.parse(listed);
    const isRight = animals.every(
      (animal, at) => animal.id > (animals[at - 1]?.id ?? after) && (!status || animal.status === status),
    );
    if (!isRight || animals.length > limit) this.#tally.stale.push(`${path} listed as: ${listed}`);
    return 'answered';
  }

  /** 404 is an answer here: a wrong one. */
  #find(id: number): Promise<string | undefined> {
    return this.count(this.#client.get(`/v1/pets/${id}`), 200, undefined, 404);
  }

  /** Counts a request. @param name of the animal that it creates. @returns the body of an answer as expected */
  async count(asked: Promise<Reply>, expected: number, name?: string, other?: number): Promise<string | undefined> {
    const tally = this.#tally;
    tally.requests++;
    const reply = await asked;
    if (reply.kind === 'hung') tally.hung++;
    else if (reply.kind === 'broken') tally.fail(broken);
    else if (reply.kind === 'closed') tally.fail(closed);
    else if (reply.status === expected || reply.status === other) return reply.text;
    else if (reply.status !== 503) tally.fail(`${reply.status} ${reply.text.slice(0, 200)}`);
    else {
      tally.fail(reply.retryAfter ? refused : unknown);
      if (reply.retryAfter && name) tally.refusedNames.add(name);
    }
    return undefined;
  }
}
