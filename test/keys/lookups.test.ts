import { DatabaseUnavailable } from '../../packages/postgres/src/postgres-errors.ts';
import { Authenticator } from '../../src/access/keys/authenticator.ts';
import { statementsOf } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { withClock } from '../support/guesses.ts';
import { expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();
const lookUp = (authenticator: Authenticator, key: string) => authenticator.lookUp(key, '127.0.0.1');

test('a hundred requests at once, with two keys, share one', async () => {
  const { keys } = store;
  const authenticator = new Authenticator(store.database);
  const secrets = [(await keys.issue({ name: 'a' })).key, (await keys.issue({ name: 'b' })).key];
  const statements = await statementsOf(store.database, async () => {
    const callers = await Promise.all(
      Array.from({ length: 100 }, (_, at) => lookUp(authenticator, secrets[at % 2] ?? '')),
    );
    expect(new Set(callers.map((caller) => caller?.name))).toEqual(new Set(['a', 'b']));
  });
  expect(statements).toEqual(['select_keys']);
});

test('a key is looked up again after nine tenths of a second, and not before; a clock that is set changes nothing', () =>
  withClock(async (setTo) => {
    const { key } = await store.keys.issue({ name: 'timed' });
    const authenticator = new Authenticator(store.database);
    const lookupsAt = async (offset: number, jump = 0) => {
      setTo(offset);
      const day = Date.now() + jump;
      Date.now = () => day;
      return (await statementsOf(store.database, async () => void (await lookUp(authenticator, key)))).length;
    };
    expect(await lookupsAt(0)).toBe(1);
    expect(await lookupsAt(899)).toBe(0);
    expect(await lookupsAt(901)).toBe(1);
    expect(await lookupsAt(1800)).toBe(0);
    // A second back would have been a second longer, an hour forward a look-up for each request.
    expect(await lookupsAt(1800, -1000)).toBe(0);
    expect(await lookupsAt(1802, -1000)).toBe(1);
    expect(await lookupsAt(2600, 3_600_000)).toBe(0);
  }));

test('a database that cannot be reached is 503, not 401', async () => {
  const { rows } = store.database;
  const { key } = await store.keys.issue({ name: 'unlucky' });
  store.database.rows = async () => {
    throw new DatabaseUnavailable('gone');
  };
  try {
    for (const face of faces) expect(await face.list(store, {}, key)).toMatchObject({ status: 503 });
  } finally {
    store.database.rows = rows;
  }
});
