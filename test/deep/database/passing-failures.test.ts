import type { Database } from '#engine/database/database.js';
import { apis } from '../../support/apis.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { onPostgres, ownsSessions } from '../../support/process.ts';
import { type Store, startStore } from '../../support/store.ts';

let store: Store;
beforeEach(async () => {
  store = await startStore(
    { DATABASE_POOL_MAX: '2' },
    { database: await createEmptyDatabase() },
  );
});
afterEach(() => store.close());

/**
 * Runs the work on both connections of the pool, because the next request may
 * take either.
 */
const onEachConnection = (work: () => Promise<unknown>) =>
  Promise.all([work(), work()]);

(onPostgres ? test : test.skip).each(apis)(
  'clients of $name notice neither a new type of a column (0A000) nor statements that sessions forgot (26000) (PostgreSQL only: the embedded store has no sessions)',
  async (api) => {
    const create = async (name: string) =>
      expect(await api.create(store, { name, categoryId: 5 })).toMatchObject({
        data: { name },
      });
    const read = async () => [
      await api.list(store, {}),
      await api.find(store, '1'),
    ];
    const forget = () =>
      onEachConnection(() =>
        store.database.orm.em
          .fork()
          .transactional((em) => em.execute('deallocate all')),
      );
    await create('Rex');
    const expected = await read();
    expect(expected).toEqual([
      { data: [expect.objectContaining({ name: 'Rex' })] },
      { data: expect.anything() },
    ]);
    await sql(store.database, 'alter table pet alter column name type varchar');
    expect(await read()).toEqual(expected);
    await forget();
    expect(await read()).toEqual(expected);
    await create('Bella');
    await forget();
    await create('Tom');
    expect(
      await sql(store.database, 'select name from pet order by id'),
    ).toEqual([['Rex'], ['Bella'], ['Tom']]);
  },
);

(ownsSessions ? test : test.skip).each(apis)(
  'when PostgreSQL becomes read-only, the first creation by $name fails and the next one gets a new connection; readiness recovers, too (PostgreSQL only, and not through a pooler, which owns the sessions)',
  async (api) => {
    /**
     * Simulates a server that has become a standby: every open session becomes
     * read-only.
     */
    async function makeSessionsReadOnly(): Promise<void> {
      const text = `select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.2)`;
      // The readiness checks have their own connection, which stays open as
      // well.
      const { checks } = store.database as unknown as {
        checks: Pick<Database, 'rows'>;
      };
      await Promise.all([
        onEachConnection(() => sql(store.database, text)),
        checks.rows({ name: '', text }, []),
      ]);
    }
    const readiness = async () =>
      (await send(store.origin, { path: '/readyz' })).status;

    await makeSessionsReadOnly();
    expect(
      await api.create(store, { name: 'Rex', categoryId: 5 }),
    ).toMatchObject({ status: 503 });
    for (let time = 1; time <= 8; time += 1) {
      expect(
        await api.create(store, { name: `Rex ${time}`, categoryId: 5 }),
      ).toHaveProperty('data');
    }
    // Citus has sessions of its own.
    const ours = `datname = current_database() and application_name = 'animal-store'`;
    const text = `select count(*) from pg_stat_activity where ${ours} and state = 'idle'`;
    expect(
      Number((await sql<[string]>(store.database, text))[0]?.[0]),
    ).toBeLessThanOrEqual(2);

    await makeSessionsReadOnly();
    expect([await readiness(), await readiness()]).toEqual([503, 200]);
    expect(
      await api.create(store, { name: 'Bella', categoryId: 5 }),
    ).toHaveProperty('data');
  },
);
