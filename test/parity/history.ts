import { type Face, faces, type Outcome, type SeenPet } from '../support/faces.ts';
import { toJson } from '../support/http.ts';
import type { Store } from '../support/store.ts';
import { assertAgrees, type KeyKind, Model } from './model.ts';
import type { Operation } from './operations.ts';
import { resolved } from './values.ts';
import { walks } from './walks.ts';

type FaceName = Face['name'];
const through = Object.fromEntries(faces.map((face) => [face.name, face])) as Record<FaceName, Face>;
const filters = [undefined, 'available', 'pending', 'sold'];

/** Plays calls on a store and, beside it, on the model; as text it is the script of what happened. */
export class History {
  readonly #model = new Model();
  readonly #lines: string[] = [];

  constructor(
    readonly store: Store,
    readonly keys: Record<KeyKind, string | null>,
    readonly calls: Record<FaceName | 'refused', number>,
  ) {}

  toString(): string {
    return this.#lines.join('\n');
  }

  /** @throws Error when the answer is not the model's */
  async play(operation: Operation): Promise<void> {
    if (operation.call === 'burst') return this.#burst(operation.creations);
    const { call, face, key } = operation;
    const given = call === 'list' ? operation.query : call === 'create' ? operation.newPet : operation.id;
    const input = resolved(given, this.#model);
    const expected = this.#model[call](face, key, input as never);
    this.#lines.push(`${face} ${call} ${toJson(input)}${key === 'write' ? '' : ` with key: ${key}`}`);
    const answer = await this.#call(face, call, input, this.keys[key]);
    this.#lines.push(`${this.#lines.pop()} -> ${toJson(answer)}`);
    if (call !== 'create' || !('data' in answer) || !('data' in expected)) return assertAgrees(answer, expected);
    const pet = answer.data as SeenPet;
    assertAgrees(answer, { data: { ...(expected.data as SeenPet), id: pet.id } });
    this.#model.created(pet);
  }

  async #call(face: FaceName, call: 'list' | 'create' | 'find', input: unknown, key: string | null) {
    this.calls[face] += 1;
    const answer: Outcome<unknown> = await through[face][call](this.store, input as never, key);
    if (!('data' in answer)) this.calls.refused += 1;
    return answer;
  }

  async #burst(creations: Array<{ face: FaceName; newPet: unknown }>): Promise<void> {
    this.#lines.push(...creations.map(({ face, newPet }) => `  at once: ${face} create ${toJson(newPet)}`));
    const answers = await Promise.all(
      creations.map(({ face, newPet }) => this.#call(face, 'create', newPet, this.keys.write)),
    );
    const newcomers = answers.map((answer, index) => {
      const { face, newPet } = creations[index] as { face: FaceName; newPet: unknown };
      const expected = this.#model.create(face, 'write', newPet) as { data: SeenPet };
      const id = 'data' in answer ? (answer.data as SeenPet).id : '';
      assertAgrees(answer, { data: { ...expected.data, id } });
      return { ...expected.data, id };
    });
    this.#lines.push(`  -> ids ${newcomers.map(({ id }) => id).join(', ')}`);
    this.#model.created(...newcomers);
  }

  /** Both faces show every animal, every filter and every page as the model does. */
  async agree(pageSize: number): Promise<void> {
    this.#lines.push(`afterwards, in pages of ${pageSize}:`);
    const lists = filters.flatMap((status) =>
      Object.entries(walks).map(([what, walk]) => {
        const data = this.#model.page(status, 1_000_000n, undefined);
        return this.#shown(`${what} ${status ?? 'all'}`, { data }, walk(this.store, status, pageSize, data.length));
      }),
    );
    const finds = this.#model.pets.flatMap((pet) =>
      faces.map(({ name }) => this.#shown(`${name} find ${pet.id}`, { data: pet }, this.#find(name, pet.id))),
    );
    await Promise.all([...lists, ...finds]);
  }

  #find(face: FaceName, id: string) {
    return this.#call(face, 'find', id, this.keys.write);
  }

  async #shown(
    what: string,
    expected: { data: SeenPet | SeenPet[] },
    answer: Promise<Outcome<unknown>>,
  ): Promise<void> {
    const seen = await answer;
    try {
      assertAgrees(seen, expected);
    } catch (error) {
      throw new Error(`${what}: ${(error as Error).message}`);
    }
  }
}
