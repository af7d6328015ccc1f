// runs: embedded, postgres
import { hash } from 'node:crypto';
import { mock } from 'node:test';
import { Call } from '#engine/call.js';
import { PetService } from '../../src/pets/pet.service.ts';
import { stockNames } from '../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Calls of a service at the same time, which may share statements. */

const store = storeForAll();
let pets: PetService;
beforeEach(async () => {
  await store.empty();
  pets = new PetService(store.database);
});

const list = (query: object) => pets.list(query as never);
const create = (name: string, call = new Call()) =>
  pets.create({ name, categoryId: 1n, status: 'available' } as never, call);

describe('lists', () => {
  test('of other limits, places and filters each get their own page', async () => {
    const ids = await stockNames(store.database, [...'abcd']);
    const pages = await Promise.all([
      list({ limit: 1, after: '0' }),
      list({ limit: 2, after: '0', status: 'available' }),
      list({ limit: 9, after: ids[2] }),
      list({ limit: 9, status: 'sold' }),
    ]);
    const namesOf = ({ items }: (typeof pages)[number]) =>
      items.map(({ name }) => name).join('');
    expect(pages.map((page) => [namesOf(page), page.hasNext])).toEqual([
      ['a', true],
      ['ab', true],
      ['d', false],
      ['', false],
    ]);
  });

  // Citus refuses several lists of a table that was distributed meanwhile.
  test('whose common statement is refused are read one by one', async () => {
    await stockNames(store.database, [...'abcd']);
    const { database } = store;
    const read = database.read.bind(database);
    let refused = 0;
    const refusing = mock.method(database, 'read', (async (
      statement,
      values,
    ) => {
      const isOfSeveral = Array.isArray(values[0]);
      if (!isOfSeveral) return read(statement, values);
      refused += 1;
      throw Object.assign(new Error('complex joins'), { code: '0A000' });
    }) as typeof read);
    const pages = await Promise.all([
      list({ limit: 1, after: '0' }),
      list({ limit: 2, after: '0', status: 'available' }),
    ]);
    refusing.mock.restore();
    expect(pages.map(({ items }) => items.length)).toEqual([1, 2]);
    expect(refused).toBe(1);
  });
});

test('items are each found by their id', async () => {
  const [a = '', b = ''] = await stockNames(store.database, [...'ab']);
  const missing = BigInt(b) + 1n;
  const found = await Promise.all(
    [BigInt(b), missing, BigInt(a), BigInt(b)].map((id) => pets.find(id)),
  );
  expect(found.map((pet) => pet?.name)).toEqual(['b', undefined, 'a', 'b']);
});

test('a creation with an idempotency key is stored with its key, and another service finds it', async () => {
  const onceOnly = () => {
    const call = new Call();
    const key = hash('sha256', 'a key', 'buffer');
    call.claim = { keyId: 1, operation: 'createPet', hash: key };
    return call;
  };
  await Promise.all([create('Rex', onceOnly()), create('Tom')]);
  const again = onceOnly();
  pets = new PetService(store.database);
  const { id } = await create('Rex', again);
  expect([again.isReplay, (await pets.find(id))?.name]).toEqual([true, 'Rex']);
  const { items } = await list({ limit: 9 });
  expect(items.map(({ name }) => name).sort()).toEqual(['Rex', 'Tom']);
});
