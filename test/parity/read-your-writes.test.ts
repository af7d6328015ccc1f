import { apis, type SeenPet } from '../support/apis.ts';
import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, type Store, storeForAll } from '../support/store.ts';

const store = storeForAll();
const second = nodeForAll(store, {});

const writers = 12;
const creationsEach = 15;

const nodes = (): Store[] => [store, { ...store, origin: second.origin }];

/** @returns the results of `work` for 0 to count-1, in parallel */
function all<T>(
  count: number,
  work: (number: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(
    Array.from({ length: count }, (_, number) => work(number)),
  );
}

function pick<T>(list: T[], number: number): T {
  return list[number % list.length] as T;
}

async function create(number: number): Promise<SeenPet> {
  const outcome = await pick(apis, number).create(pick(nodes(), number >> 1), {
    name: `pet ${number}`,
    categoryId: number,
  });
  if (!('data' in outcome)) throw new Error(JSON.stringify(outcome));
  return outcome.data;
}

test('clients that create through both APIs of two nodes read each acknowledged animal, and concurrent paging misses none', async () => {
  const before = await all(30, create);
  let writing = true;
  const written = all(writers, async (writer) => {
    for (let round = 0; round < creationsEach; round += 1) {
      const pet = await create(100 + writer * creationsEach + round);
      // Through each API of each node, in turn.
      const [api, node] = [
        pick(apis, round >> 1),
        pick(nodes(), writer + round),
      ];
      expect(await api.find(node, pet.id)).toEqual({ data: pet });
      expect(
        await api.list(node, { after: `${BigInt(pet.id) - 1n}`, limit: 1 }),
      ).toEqual({ data: [pet] });
    }
  }).finally(() => {
    writing = false;
  });

  const visited: bigint[] = [];
  let next: string | undefined = '/v1/pets?limit=3';
  while (next) {
    const { json, headers } = await rest(pick(nodes(), visited.length), next);
    visited.push(...json.map(({ id }: { id: number }) => BigInt(id)));
    const link = /<([^>]+)>; rel="next"/.exec(`${headers.link}`)?.[1];
    if (link) next = new URL(link).pathname + new URL(link).search;
    else
      next = writing ? `/v1/pets?limit=3&after=${visited.at(-1)}` : undefined;
  }
  await written;

  // Each id once, in order; no id was added later before the last one read.
  expect(visited).toEqual(
    expect.arrayContaining(before.map(({ id }) => BigInt(id))),
  );
  const ids = await sql<[id: string]>(
    store.database,
    'select id from pet order by id',
  );
  expect(
    ids.map(([id]) => BigInt(id)).filter((id) => id <= (visited.at(-1) ?? 0n)),
  ).toEqual(visited);
});

test('the same request shows a pet as soon as its creation is acknowledged', async () => {
  const last = await create(0);
  const query = { after: last.id, limit: 2 };
  const responses = () =>
    Promise.all(
      nodes().flatMap((node) => apis.map((api) => api.list(node, query))),
    );
  expect(await responses()).toEqual(Array(4).fill({ data: [] }));
  const next = await create(1);
  expect(await responses()).toEqual(Array(4).fill({ data: [next] }));
});
