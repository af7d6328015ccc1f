import { type Api, apis, type Outcome, type SeenPet } from '../support/apis.ts';
import { graphqlText } from '../support/graphql.ts';
import { expect } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import type { Store } from '../support/store.ts';
import { type KeyKind, Model } from './model.ts';
import { type Operation, resolved } from './operations.ts';

const through = Object.fromEntries(
  apis.map((api) => [api.name, api]),
) as Record<Api['name'], Api>;

/**
 * Reads all pages of a list, and fails when the list ends too early or too
 * late.
 */
type Walk = (
  store: Store,
  status: string | undefined,
  limit: number,
  length: number,
) => Promise<SeenPet[]>;

const walks: Record<string, Walk> = {
  async 'by Link'(store, status, limit, length) {
    const pets: SeenPet[] = [];
    for (
      let path = `/v1/pets?limit=${limit}${status ? `&status=${status}` : ''}`;
      path !== '';
    ) {
      const { json, headers } = await rest(store, path);
      for (const pet of json)
        pets.push({ ...pet, id: `${pet.id}`, categoryId: `${pet.categoryId}` });
      const [, origin, next = ''] =
        /^<(http:\/\/[^/]+)([^>]*)>; rel="next"/.exec(
          `${headers.link ?? ''}`,
        ) ?? [];
      const hasNext = pets.length < length;
      expect([path, origin, next !== '']).toEqual([
        path,
        hasNext ? store.origin : undefined,
        hasNext,
      ]);
      path = next;
    }
    return pets;
  },

  async 'by cursor'(store, status, first, length) {
    const query = `query ($first: Int, $after: String, $status: PetStatus) {
      petsConnection(first: $first, after: $after, status: $status) {
        edges { cursor node { id name categoryId status } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }`;
    const pets: SeenPet[] = [];
    for (let after: string | undefined; ; ) {
      const { data } = await graphqlText(store, {
        query,
        variables: { first, after, status },
      });
      const { edges, pageInfo } = data.petsConnection;
      for (const { node } of edges) pets.push(node);
      const [startCursor = null, endCursor = null] = [
        edges.at(0)?.cursor,
        edges.at(-1)?.cursor,
      ];
      const hasNextPage = pets.length < length;
      expect({ after, ...pageInfo }).toEqual({
        after,
        hasNextPage,
        hasPreviousPage: after !== undefined,
        startCursor,
        endCursor,
      });
      if (!hasNextPage) return pets;
      after = endCursor;
    }
  },
};

/**
 * Makes the same calls to a store and to the model, and compares the results.
 */
export class History {
  readonly #model = new Model();

  constructor(
    readonly store: Store,
    readonly keys: Record<KeyKind, string | null>,
  ) {}

  async play(operations: Operation[]): Promise<void> {
    for (const operation of operations) {
      if (operation.call === 'burst')
        await this.#create('write', operation.creations);
      else if (operation.call === 'create')
        await this.#create(operation.key, [operation]);
      else {
        const { call, api, key } = operation;
        const input = resolved(
          call === 'list' ? operation.query : operation.id,
          this.#model,
        );
        const actual = await through[api][call](
          this.store,
          input as never,
          this.keys[key],
        );
        const expected = this.#model[call](api, key, input as never);
        expect({ api, call, key, input, actual }).toEqual({
          api,
          call,
          key,
          input,
          actual: expected,
        });
      }
    }
  }

  /** Creates in parallel. */
  async #create(
    key: KeyKind,
    creations: Array<{ api: Api['name']; newPet: unknown }>,
  ): Promise<void> {
    const actual = await Promise.all(
      creations.map(({ api, newPet }) =>
        through[api].create(this.store, newPet, this.keys[key]),
      ),
    );
    const expected = creations.map(({ api, newPet }) =>
      this.#model.create(api, key, newPet),
    );
    expect({ key, creations, actual }).toEqual({
      key,
      creations,
      actual: expected,
    });
    this.#model.created(
      ...actual.flatMap((outcome: Outcome<SeenPet>) =>
        'data' in outcome ? [outcome.data] : [],
      ),
    );
  }

  /** Compares every animal, filter and page of both APIs with the model. */
  async agree(pageSize: number): Promise<void> {
    const { pets } = this.#model;
    for (const status of [undefined, 'available', 'pending', 'sold']) {
      const page = this.#model.page(status, pets.length);
      for (const [how, walk] of Object.entries(walks)) {
        const walked = await walk(this.store, status, pageSize, page.length);
        expect({ how, status, pageSize, walked }).toEqual({
          how,
          status,
          pageSize,
          walked: page,
        });
      }
    }
    const found = apis.flatMap((api) =>
      pets.map(({ id }) => api.find(this.store, id)),
    );
    expect(await Promise.all(found)).toEqual(
      apis.flatMap(() => pets.map((data) => ({ data }))),
    );
  }
}
