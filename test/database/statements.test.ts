// runs: embedded, postgres
import { hash } from 'node:crypto';
import { mock } from 'node:test';
import { Call } from '#engine/call.js';
import { PetService } from '../../src/pets/pet.service.ts';
import { sentDuring, stock } from '../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Which statements the calls of a service become, with their values. */

const store = storeForAll();
let pets: PetService;
beforeEach(async () => {
  await store.empty();
  pets = new PetService(store.database);
});

/** The statements of calls that are made at the same time. */
async function sentBy(...calls: Array<() => Promise<unknown>>) {
  const sent = await sentDuring(store.database, () =>
    Promise.all(calls.map((call) => call())),
  );
  // The first list of a process asks it once.
  return sent.filter(({ name }) => name !== 'has_citus');
}
const list = (query: object) => () => pets.list(query as never);
const create =
  (name: string, call = new Call()) =>
  () =>
    pets.create({ name, categoryId: 1n, status: 'available' } as never, call);

const oneList = expect.stringMatching(/^list_pet_[0-9a-f]{16}$/);

describe('a list', () => {
  test('reads one item more than its page, to know whether there is a next one', async () => {
    await stock(store.database, 4);
    const [sent] = await sentBy(list({ limit: 3, after: '0' }));
    expect(sent).toEqual({ name: oneList, values: [4, '0'] });
    const { items, hasNext } = await pets.list({ limit: 3 } as never);
    expect([items.length, hasNext]).toEqual([3, true]);
  });

  test('has a statement of its own for each combination of filters', async () => {
    const [all] = await sentBy(list({ limit: 3 }));
    const [sent] = await sentBy(list({ limit: 3, status: 'sold' }));
    expect(sent?.name).toEqual(oneList);
    expect(sent?.name).not.toBe(all?.name);
    expect(sent?.values.slice(0, 2)).toEqual([4, 'sold']);
  });

  test('shares a statement with others, and each gets its own page', async () => {
    await stock(store.database, 4);
    const first = list({ limit: 1, after: '0' });
    const others = list({ limit: 2, after: '0', status: 'available' });
    const sent = await sentBy(first, others);
    expect(sent.map(({ name }) => name)).toEqual([
      expect.stringMatching(/^lists_pet_/),
    ]);
    // An array for each parameter: the limits, the places, the filters.
    expect(sent[0]?.values).toEqual([
      [2, 3],
      ['0', '0'],
      [null, 'available'],
    ]);
    const pages = await Promise.all([first(), others()]);
    expect(pages.map(({ items }) => items.length)).toEqual([1, 2]);
  });

  test('that is equal to another one is read once', async () => {
    const [sent, ...more] = await sentBy(
      list({ limit: 3, after: '0' }),
      list({ limit: 3, after: '0' }),
    );
    expect([sent?.name, more]).toEqual([oneList, []]);
  });
});

// Citus refuses several lists of a table that was distributed meanwhile.
test('lists whose common statement is refused are read one by one', async () => {
  await stock(store.database, 4);
  const { database } = store;
  const read = database.read.bind(database);
  const refusing = mock.method(database, 'read', (async (statement, values) => {
    if (!statement.name.startsWith('lists_')) return read(statement, values);
    throw Object.assign(new Error('complex joins'), { code: '0A000' });
  }) as typeof read);
  const first = list({ limit: 1, after: '0' });
  const other = list({ limit: 2, after: '0', status: 'available' });
  const pages = await Promise.all([first(), other()]);
  expect(pages.map(({ items }) => items.length)).toEqual([1, 2]);
  const names = refusing.mock.calls.map(({ arguments: [one] }) => one.name);
  expect(names).toEqual([
    expect.stringMatching(/^lists_pet_/),
    oneList,
    oneList,
  ]);
  refusing.mock.restore();
});

describe('an item', () => {
  test('alone is found by its id, and several by an array', async () => {
    const one = () => pets.find(1n);
    const other = () => pets.find(2n);
    expect(await sentBy(one)).toEqual([
      { name: 'find_one_pet', values: ['1'] },
    ]);
    expect(await sentBy(one, other)).toEqual([
      { name: 'find_pet', values: [['1', '2']] },
    ]);
  });
});

describe('a creation', () => {
  const onceOnly = (text: string) => {
    const call = new Call();
    const key = hash('sha256', text, 'buffer');
    call.claim = { keyId: 1, operation: 'createPet', hash: key };
    return call;
  };

  test('alone has its values, and several have an array for each column', async () => {
    expect(await sentBy(create('Rex'))).toEqual([
      { name: 'insert_one_pet', values: ['Rex', '1', 'available'] },
    ]);
    const [sent] = await sentBy(create('Rex'), create('Tom'));
    expect(sent).toEqual({
      name: 'insert_pet',
      values: [
        ['Rex', 'Tom'],
        ['1', '1'],
        ['available', 'available'],
      ],
    });
  });

  test('with an idempotency key stores the key in the same statement, and another statement finds it', async () => {
    const first = create('Rex', onceOnly('a key'));
    expect((await sentBy(first)).map(({ name }) => name)).toEqual([
      'insert_once_pet',
    ]);
    const again = onceOnly('a key');
    const { id } = await create('Rex', again)();
    expect([again.isReplay, (await pets.find(id))?.name]).toEqual([
      true,
      'Rex',
    ]);
    expect((await pets.list({ limit: 9 } as never)).items).toHaveLength(1);
  });
});
