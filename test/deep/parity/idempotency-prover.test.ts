import { once as event } from 'node:events';
import { request } from 'node:http';
import fc from 'fast-check';
import type { Database, Statement } from '../../../packages/postgres/src/database.ts';
import { outcomeUnknown } from '../../../packages/postgres/src/postgres-errors.ts';
import { cases } from '../../support/cases.ts';
import { type Created, creators, headerOf } from '../../support/creations.ts';
import { withRows } from '../../support/database-access.ts';
import { toJson } from '../../support/http.ts';
import { afterAll, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { type ServiceNode, startNode, storeForAll } from '../../support/store.ts';

/**
 * Random creations with few keys, by two clients, through both faces of two nodes, many at once, against a model. Some
 * clients leave before their answer, some answers of the database are lost: who has a key sends again until he is
 * answered. IDEMPOTENCY_RUNS and IDEMPOTENCY_SEED come from the environment.
 */
const runs = cases(200, 'IDEMPOTENCY_RUNS');
const seed = Number(process.env.IDEMPOTENCY_SEED ?? Math.floor(Math.random() * 2 ** 31));

const inputs = [
  { name: 'Rex', categoryId: 5n },
  { name: 'Rex', categoryId: 5n, status: 'sold' },
  { name: 'rex', categoryId: 9007199254740993n },
];
const creation = fc.record({
  face: fc.constantFrom(...creators),
  node: fc.nat({ max: 1 }),
  client: fc.nat({ max: 1 }),
  key: fc.option(fc.constantFrom('a', '"a"', 'b', '"c"')),
  input: fc.nat({ max: inputs.length - 1 }),
  isAbandoned: fc.boolean(),
});
type Creation = typeof creation extends fc.Arbitrary<infer One> ? One : never;
const burst = fc.record({
  creations: fc.array(creation, { minLength: 1, maxLength: 16 }),
  /** How many answers of the database are lost. */
  lost: fc.nat({ max: 2 }),
});

let nodes: ServiceNode[];
let clients: string[];
const store = storeForAll({}, async () => {
  nodes = [await startNode(store), await startNode(store)];
  clients = [store.key, (await store.keys.issue({ name: 'another' })).key];
});
afterAll(() => Promise.all(nodes.map((node) => node.close())));

test(`of all with a key one is created, in each of ${runs} histories, IDEMPOTENCY_SEED=${seed}`, async () => {
  let number = 0;
  const ids = [0n];
  const property = fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 4 }), async (bursts) => {
    const history = new History(`history-${++number}`);
    const last = ids.at(-1);
    for (const { creations, lost } of bursts) {
      // Of one without a key nobody could say what has become.
      const known = lost > 0 ? creations.filter(({ key }) => key !== null) : creations;
      const newcomers = await whileLosing(lost, () => history.play(known, lost > 0));
      for (const id of newcomers.sort((a, b) => (a < b ? -1 : 1))) {
        expect(id > (ids.at(-1) as bigint)).toBe(true);
        ids.push(id);
      }
    }
    const { json } = await rest(store, `/v1/pets?limit=100&after=${last}`);
    expect(json.map(({ id }: { id: number }) => BigInt(id))).toEqual(ids.slice(ids.indexOf(last as bigint) + 1));
  });
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
});

class History {
  readonly #name: string;
  /** What was created under the names of each client. */
  readonly #created = new Map<string, Created['outcome']>();

  constructor(name: string) {
    this.#name = name;
  }

  /** Sends all at once, and compares the answers. @returns the ids of what was not there before */
  async play(creations: Creation[], isLost: boolean): Promise<bigint[]> {
    const answers = await Promise.all(creations.map((creation) => this.#answerTo(creation)));
    const groups = Map.groupBy(creations.keys(), (at) => {
      const { client, key } = creations[at] as Creation;
      return key === null ? `alone ${at}` : `${client} ${key.replaceAll('"', '')}`;
    });
    return [...groups].flatMap(([name, places]) => {
      const known = this.#created.get(name);
      const first = known ?? places.map((at) => answers[at]?.outcome).find((outcome) => outcome?.id !== undefined);
      for (const at of places) {
        const { input } = creations[at] as Creation;
        const isSame = shown(inputs[input] ?? {}) === shown(first ?? {});
        const reused = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_REUSED', status: 422 });
        expect(answers[at]?.outcome).toEqual(isSame ? first : reused);
      }
      const fresh = places.filter((at) => answers[at]?.outcome.id !== undefined && !answers[at]?.replayed).length;
      // Who had no answer is told at his next request that it was there.
      const mayHaveMissed = isLost || places.some((at) => creations[at]?.isAbandoned);
      expect([known ? 0 : 1, ...(mayHaveMissed ? [0] : [])]).toContain(fresh);
      if (known) return [];
      if (!name.startsWith('alone')) this.#created.set(name, first as Created['outcome']);
      return [BigInt(`${first?.id}`)];
    });
  }

  async #answerTo({ face, node, client, key, input, isAbandoned }: Creation): Promise<Created> {
    const service = nodes[node] as ServiceNode;
    const creation = { once: key?.replace(/\w/, `${this.#name}-$&`), key: clients[client] };
    const newPet = inputs[input] as object;
    if (creation.once && isAbandoned) await abandon(service, newPet, creation);
    for (;;) {
      const answer = await face.create(service, newPet, creation);
      if (answer.outcome.status !== 503 || !answer.retryAfter) return answer;
    }
  }
}

/** The animal without its id, as the faces show it. */
function shown({ name, categoryId, status = 'available' }: Record<string, unknown>): string {
  return JSON.stringify([name, `${categoryId}`, status]);
}

/** Sends a creation, and is gone before the answer. */
async function abandon({ origin }: ServiceNode, newPet: object, { once, key }: { once?: string; key?: string }) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headerOf(once) };
  const outgoing = request(`${origin}/v1/pets`, { method: 'POST', headers, agent: false });
  outgoing.on('error', () => undefined).end(toJson(newPet));
  await event(outgoing, 'finish');
  outgoing.destroy();
}

/** Meanwhile so many statements that insert are carried out, and nobody is told. */
function whileLosing<Result>(count: number, work: () => Promise<Result>): Promise<Result> {
  let left = count;
  const lose = (rows: Database['rows']) => async (statement: Statement, values: unknown[]) => {
    const found = await rows(statement, values);
    if (statement.name === 'insert_once_pet' && left-- > 0) throw outcomeUnknown(new Error('Connection terminated'));
    return found as never;
  };
  return withRows(store.database, lose, work);
}
