import { Call } from '#engine/call.js';
import { Unavailable } from '#engine/errors.js';
import { Records } from '#engine/records/records.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();
const statement = { name: 'one', text: 'select 1' };

test('a statement that has not waited for its turn is refused in all tests', async () => {
  const { database } = store;
  const refusal = 'The statement one has not waited for its turn.';
  await expect(database.rows(statement, [])).rejects.toThrow(refusal);
  await expect(database.read(statement, [])).rejects.toThrow(refusal);
  const queue = { collection: 'none', operation: 'read' };
  const one = database.inTurn(new Call(), queue, () =>
    database.rows(statement, []),
  );
  expect(await one).toEqual([['1']]);
});

test('one table leaves half of the connections, and another one half of these', async () => {
  const { database } = store;
  const { promise, resolve } = Promise.withResolvers<void>();
  const running = new Map<string, number>();
  const occupy = (collection: string, operation: number) =>
    database.inTurn(
      new Call(),
      { collection, operation: `${operation}` },
      async () => {
        running.set(collection, (running.get(collection) ?? 0) + 1);
        await promise;
      },
    );
  const works = [];
  for (const table of ['first', 'second', 'third', 'fourth'])
    for (let kind = 0; kind < 20; kind += 1) works.push(occupy(table, kind));
  for (let turn = 0; turn < 9; turn += 1) await new Promise(setImmediate);
  expect(Object.fromEntries(running)).toEqual({
    first: 5,
    second: 2,
    third: 1,
    fourth: 1,
  });
  resolve();
  await Promise.all(works);
  expect([...running.values()]).toEqual([20, 20, 20, 20]);
});

test('tables whose statements had no answer in time leave a quarter of the connections until they are answered', async () => {
  const { database } = store;
  const { promise, resolve } = Promise.withResolvers<void>();
  let running = 0;
  const run = (collection: string, work: () => Promise<unknown>) =>
    database.inTurn(new Call(), { collection, operation: 'read' }, work);
  const occupy = (table: string) =>
    run(table, () => {
      running += 1;
      return promise;
    });
  const begin = async () => {
    running = 0;
    const works = tables.map(occupy);
    for (let turn = 0; turn < 9; turn += 1) await new Promise(setImmediate);
    return works;
  };
  const tables = Array.from({ length: 12 }, (_, at) => `locked ${at}`);
  for (const table of tables) {
    const late = run(table, () => Promise.reject(Unavailable.late()));
    await expect(late).rejects.toThrow('in time');
  }
  const waiting = await begin();
  expect(running).toBe(8);
  expect(await run('another', async () => 'answered')).toBe('answered');
  expect(running).toBe(8);
  resolve();
  await Promise.all(waiting);
  expect(running).toBe(12);
  await Promise.all(await begin());
  expect(running).toBe(12);
});

test.each([
  ['a full pool', 'timeout exceeded when trying to connect'],
  ['a lost database', 'Connection terminated'],
])('%s says nothing of a table', async (_name, reason) => {
  const { database } = store;
  const { promise, resolve } = Promise.withResolvers<void>();
  const queue = (operation: string) => ({ collection: 'last', operation });
  const failed = database.inTurn(new Call(), queue('read'), () =>
    Promise.reject(new Unavailable('', new Error(reason))),
  );
  await expect(failed).rejects.toThrow(Unavailable);
  const others = Array.from({ length: 9 }, (_, at) =>
    database.inTurn(
      new Call(),
      { collection: `other ${at}`, operation: 'read' },
      () => promise,
    ),
  );
  const last = database.inTurn(new Call(), queue('read'), async () => 'read');
  expect(await last).toBe('read');
  resolve();
  await Promise.all(others);
});

test('a transaction does not wait for the connections of a table, whose users may wait for it', async () => {
  const { database } = store;
  const { promise, resolve } = Promise.withResolvers<void>();
  const kinds = Array.from({ length: 20 }, (_, kind) => `${kind}`);
  const occupied = kinds.map((operation) =>
    database.inTurn(
      new Call(),
      { collection: 'pet', operation },
      () => promise,
    ),
  );
  const call = Call.ofOperator();
  const pets = new Records<any, any>(database, PetEntity);
  const frame = { creates: [PetEntity] };
  const pet = await database.transaction(call, frame, () =>
    pets.create({ name: 'Rex', categoryId: 5, status: 'available' }, call),
  );
  expect(pet.name).toBe('Rex');
  resolve();
  await Promise.all(occupied);
});
