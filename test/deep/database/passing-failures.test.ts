import type { Database } from '../../../packages/postgres/src/database.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { faces } from '../../support/faces.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import { onPostgres, ownsSessions } from '../../support/process.ts';
import { type Store, startStore } from '../../support/store.ts';

let store: Store;
beforeEach(async () => {
  store = await startStore({ DATABASE_POOL_MAX: '2' }, { database: await createEmptyDatabase() });
});
afterEach(() => store.close());

/** On both connections of the pool, whichever is taken next. */
const onEachConnection = (work: () => Promise<unknown>) => Promise.all([work(), work()]);

(onPostgres ? test : test.skip).each(faces)(
  'neither a column that changes its type (0A000) nor statements that sessions forget (26000) are noticed, by $name (PostgreSQL only: the embedded store has no sessions)',
  async (face) => {
    const create = async (name: string) =>
      expect(await face.create(store, { name, categoryId: 5 })).toMatchObject({ data: { name } });
    const ask = async () => [await face.list(store, {}), await face.find(store, '1')];
    const forget = () =>
      onEachConnection(() => store.database.orm.em.fork().transactional((em) => em.execute('deallocate all')));
    await create('Rex');
    const answers = await ask();
    expect(answers).toEqual([{ data: [expect.objectContaining({ name: 'Rex' })] }, { data: expect.anything() }]);
    await sql(store.database, 'alter table pet alter column name type varchar');
    expect(await ask()).toEqual(answers);
    await forget();
    expect(await ask()).toEqual(answers);
    await create('Bella');
    await forget();
    await create('Tom');
    expect(await sql(store.database, 'select name from pet order by id')).toEqual([['Rex'], ['Bella'], ['Tom']]);
  },
);

(ownsSessions ? test : test.skip).each(faces)(
  'a PostgreSQL that takes no more writes refuses the first creation by $name, and the next one goes to a server that takes them; readiness notices, too (PostgreSQL only, and not through a pooler: whose sessions they are)',
  async (face) => {
    /** As when the server behind an address has become a standby: all sessions that are open now go there. */
    async function makeSessionsReadOnly(): Promise<void> {
      const text = `select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.2)`;
      // The connection of the checks is as old as the pool's.
      const { checks } = store.database as unknown as { checks: Pick<Database, 'rows'> };
      await Promise.all([onEachConnection(() => sql(store.database, text)), checks.rows({ name: '', text }, [])]);
    }
    const ready = async () => (await send(store.origin, { path: '/readyz' })).status;

    await makeSessionsReadOnly();
    expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toMatchObject({ status: 503 });
    for (let time = 1; time <= 8; time += 1) {
      expect(await face.create(store, { name: `Rex ${time}`, categoryId: 5 })).toHaveProperty('data');
    }
    // Citus has sessions of its own.
    const ours = `datname = current_database() and application_name = 'animal-store'`;
    const text = `select count(*) from pg_stat_activity where ${ours} and state = 'idle'`;
    expect(Number((await sql<[string]>(store.database, text))[0]?.[0])).toBeLessThanOrEqual(2);

    await makeSessionsReadOnly();
    expect([await ready(), await ready()]).toEqual([503, 200]);
    expect(await face.create(store, { name: 'Bella', categoryId: 5 })).toHaveProperty('data');
  },
);
