import { faces, type SeenPet } from '../support/faces.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, type Store, storeForAll } from '../support/store.ts';

const store = storeForAll();
const second = nodeForAll(store, {});
beforeEach(() => store.empty());

const writers = 12;
const creationsEach = 15;

const nodes = (): Store[] => [store, { ...store, origin: second.origin }];

/** What `work` gives for 0 to count-1, all at once. */
function all<T>(count: number, work: (number: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, number) => work(number)));
}

function turn<T>(list: T[], number: number): T {
  return list[number % list.length] as T;
}

async function create(number: number): Promise<SeenPet> {
  const outcome = await turn(faces, number).create(turn(nodes(), number >> 1), {
    name: `pet ${number}`,
    categoryId: number,
  });
  if (!('data' in outcome)) throw new Error(JSON.stringify(outcome));
  return outcome.data;
}

describe('while many write at once, through both faces of two nodes', () => {
  test('every read that begins after an acknowledgement sees the animal, on every face of every node', async () => {
    await all(writers, async (writer) => {
      for (let round = 0; round < creationsEach; round += 1) {
        const pet = await create(writer * creationsEach + round);
        const [face, node] = [turn(faces, round >> 1), turn(nodes(), writer + round)];
        const after = `${BigInt(pet.id) - 1n}`;
        expect(await face.find(node, pet.id)).toEqual({ data: pet });
        expect(await face.list(node, { after, limit: 1 })).toEqual({ data: [pet] });
      }
    });
  });

  test('a walk by Link visits every animal once, in order, and none appears behind it afterwards', async () => {
    const before = await all(30, create);
    let writing = true;
    const written = all(writers, async (writer) => {
      for (let round = 0; round < creationsEach; round += 1) await create(100 + writer * creationsEach + round);
    }).finally(() => {
      writing = false;
    });

    const visited: bigint[] = [];
    let next: string | undefined = '/v1/pets?limit=3';
    while (next) {
      const { json, headers } = await rest(turn(nodes(), visited.length), next);
      visited.push(...json.map(({ id }: { id: number }) => BigInt(id)));
      const link = /<([^>]+)>; rel="next"/.exec(`${headers.link}`)?.[1];
      if (link) next = new URL(link).pathname + new URL(link).search;
      else next = writing ? `/v1/pets?limit=3&after=${visited.at(-1)}` : undefined;
    }
    await written;

    expect(visited).toEqual([...new Set(visited)].sort((a, b) => (a < b ? -1 : 1)));
    expect(visited).toEqual(expect.arrayContaining(before.map(({ id }) => BigInt(id))));
    const ids = await store.database.rows<[id: string]>(
      { name: 'all_ids', text: 'select id from pet order by id' },
      [],
    );
    const last = visited.at(-1) ?? 0n;
    expect(ids.map(([id]) => BigInt(id)).filter((id) => id <= last)).toEqual(visited);
  });
});
