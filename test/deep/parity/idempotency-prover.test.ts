import { once as event } from 'node:events';
import { request } from 'node:http';
import fc from 'fast-check';
import type { Database, Statement } from '#engine/database/database.js';
import { Unavailable } from '#engine/errors.js';
import { type Created, creators, headerOf } from '../../support/apis.ts';
import { withRows } from '../../support/database-access.ts';
import { toJson } from '../../support/http.ts';
import { afterAll, cases, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import {
  type ServiceNode,
  startNode,
  storeForAll,
} from '../../support/store.ts';

/**
 * Random creations with few keys, by two clients, through both APIs of two
 * nodes, many at once, against a model. Some clients disconnect before the
 * response, and some responses of the database are lost. A client with a key
 * sends again until it gets a response. IDEMPOTENCY_RUNS and IDEMPOTENCY_SEED
 * come from the environment.
 */
const runs = cases(200, 'IDEMPOTENCY_RUNS');
const seed = Number(
  process.env.IDEMPOTENCY_SEED ?? Math.floor(Math.random() * 2 ** 31),
);

const inputs = [
  { name: 'Rex', categoryId: 5n },
  { name: 'Rex', categoryId: 5n, status: 'sold' },
  { name: 'rex', categoryId: 9007199254740993n },
];
const creation = fc.record({
  api: fc.constantFrom(...creators),
  node: fc.nat({ max: 1 }),
  client: fc.nat({ max: 1 }),
  key: fc.option(fc.constantFrom('a', '"a"', 'b', '"c"')),
  input: fc.nat({ max: inputs.length - 1 }),
  isAbandoned: fc.boolean(),
});
type Creation = typeof creation extends fc.Arbitrary<infer One> ? One : never;
const burst = fc.record({
  creations: fc.array(creation, { minLength: 1, maxLength: 16 }),
  /** The number of lost responses of the database. */
  lost: fc.nat({ max: 2 }),
});

let nodes: ServiceNode[];
let clients: string[];
const store = storeForAll({}, async () => {
  nodes = [await startNode(store), await startNode(store)];
  clients = [store.key, (await store.keys.issue({ name: 'another' })).key];
});
afterAll(() => Promise.all(nodes.map((node) => node.close())));

test(`all creations with a key create one animal, in each of ${runs} histories, IDEMPOTENCY_SEED=${seed}`, async () => {
  let number = 0;
  const ids = [0n];
  const property = fc.asyncProperty(
    fc.array(burst, { minLength: 1, maxLength: 4 }),
    async (bursts) => {
      const history = new History(`history-${++number}`);
      const last = ids.at(-1);
      for (const { creations, lost } of bursts) {
        // The outcome of a lost creation without a key is unknown.
        const known =
          lost > 0 ? creations.filter(({ key }) => key !== null) : creations;
        const newcomers = await whileLosing(lost, () =>
          history.play(known, lost > 0),
        );
        for (const id of newcomers.sort((a, b) => (a < b ? -1 : 1))) {
          expect(id > (ids.at(-1) as bigint)).toBe(true);
          ids.push(id);
        }
      }
      const { json } = await rest(store, `/v1/pets?limit=100&after=${last}`);
      expect(json.map(({ id }: { id: number }) => BigInt(id))).toEqual(
        ids.slice(ids.indexOf(last as bigint) + 1),
      );
    },
  );
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
});

class History {
  readonly #name: string;
  /** The outcomes of creations, by client and key. */
  readonly #created = new Map<string, Created['outcome']>();

  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Sends all creations at once, and compares the responses. @returns the ids
   * of new animals
   */
  async play(creations: Creation[], isLost: boolean): Promise<bigint[]> {
    const responses = await Promise.all(
      creations.map((creation) => this.#answerTo(creation)),
    );
    const groups = Map.groupBy(creations.keys(), (at) => {
      const { client, key } = creations[at] as Creation;
      return key === null
        ? `alone ${at}`
        : `${client} ${key.replaceAll('"', '')}`;
    });
    return [...groups].flatMap(([name, places]) => {
      const known = this.#created.get(name);
      const first =
        known ??
        places
          .map((at) => responses[at]?.outcome)
          .find((outcome) => outcome?.id !== undefined);
      for (const at of places) {
        const { input } = creations[at] as Creation;
        const isSame = shown(inputs[input] ?? {}) === shown(first ?? {});
        const reused = expect.objectContaining({
          code: 'IDEMPOTENCY_KEY_REUSED',
          status: 422,
        });
        expect(responses[at]?.outcome).toEqual(isSame ? first : reused);
      }
      const fresh = places.filter(
        (at) =>
          responses[at]?.outcome.id !== undefined && !responses[at]?.replayed,
      ).length;
      // A client that missed its response gets it as a replay to its next
      // request.
      const mayHaveMissed =
        isLost || places.some((at) => creations[at]?.isAbandoned);
      expect([known ? 0 : 1, ...(mayHaveMissed ? [0] : [])]).toContain(fresh);
      if (known) return [];
      if (!name.startsWith('alone'))
        this.#created.set(name, first as Created['outcome']);
      return [BigInt(`${first?.id}`)];
    });
  }

  async #answerTo({
    api,
    node,
    client,
    key,
    input,
    isAbandoned,
  }: Creation): Promise<Created> {
    const service = nodes[node] as ServiceNode;
    const creation = {
      once: key?.replace(/\w/, `${this.#name}-$&`),
      key: clients[client],
    };
    const newPet = inputs[input] as object;
    if (creation.once && isAbandoned) await abandon(service, newPet, creation);
    for (;;) {
      const response = await api.create(service, newPet, creation);
      if (response.outcome.status !== 503 || !response.retryAfter)
        return response;
    }
  }
}

/** The animal without its id, in the form of the APIs. */
function shown({
  name,
  categoryId,
  status = 'available',
}: Record<string, unknown>): string {
  return JSON.stringify([name, `${categoryId}`, status]);
}

/** Sends a creation, and disconnects before the response. */
async function abandon(
  { origin }: ServiceNode,
  newPet: object,
  { once, key }: { once?: string; key?: string },
) {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...headerOf(once),
  };
  const outgoing = request(`${origin}/v1/pets`, {
    method: 'POST',
    headers,
    agent: false,
  });
  outgoing.on('error', () => undefined).end(toJson(newPet));
  await event(outgoing, 'finish');
  outgoing.destroy();
}

/** During the work the responses to `count` executed insertions are lost. */
function whileLosing<Result>(
  count: number,
  work: () => Promise<Result>,
): Promise<Result> {
  let left = count;
  const lose =
    (rows: Database['rows']) =>
    async (statement: Statement, values: unknown[]) => {
      const found = await rows(statement, values);
      if (statement.name === 'insert_once_pet' && left-- > 0)
        throw Unavailable.outcomeUnknown(new Error('Connection terminated'));
      return found as never;
    };
  return withRows(store.database, lose, work);
}
