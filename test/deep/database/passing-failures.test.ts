import type pg from 'pg';
import type { Database } from '../../../packages/postgres/src/database.ts';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { faces } from '../../support/faces.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, ownsSessions } from '../../support/process.ts';
import { createRole, endSessions, onServer, openSession, type TestRole, urlOf } from '../../support/session.ts';
import { type Store, startStore } from '../../support/store.ts';

const onPostgresOnly = onPostgres ? describe.each(faces) : describe.skip.each(faces);

onPostgresOnly('what passes, by $name (PostgreSQL only: the embedded store has no sessions)', (face) => {
  let database: TestDatabase;
  let role: TestRole;
  let store: Store;
  let session: pg.Client;
  beforeEach(async () => {
    database = await createEmptyDatabase();
    role = await createRole(database);
    store = await startStore({ DATABASE_URL: role.url, DATABASE_POOL_MAX: '2' }, { database });
    session = await openSession(database);
    await session.query(`insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`);
  });
  afterEach(async () => {
    await session.end();
    await store.close();
    await role.drop();
  });

  const rex = { id: '1', name: 'Rex', categoryId: '5', status: 'sold' };
  const unavailable = {
    code: 'SERVICE_UNAVAILABLE',
    status: 503,
    message: 'The database cannot be reached; try again shortly.',
  };

  test('a lock that is not to be had in time is 503 (55P03)', async () => {
    await session.query(`alter role ${role.name} set lock_timeout = 100`);
    // The sessions of the service are new ones then.
    await endSessions(session);
    await eventually(async () => 'data' in (await face.list(store, {})));
    await session.query('begin; lock table pet in access exclusive mode');
    expect(await face.list(store, {})).toEqual(unavailable);
    expect(await face.find(store, '1')).toEqual(unavailable);
    expect(await face.create(store, { name: 'Bella', categoryId: 5 })).toEqual(unavailable);
    await session.query('rollback');
    expect(await face.list(store, {})).toEqual({ data: [rex] });
  });

  test('a role that may not log in (28000) and a database that is away for a while (3D000) are 503', async () => {
    await session.query(`alter role ${role.name} nologin`);
    await endSessions(session);
    for (let time = 1; time <= 5; time += 1) expect(await face.list(store, {})).toEqual(unavailable);
    await session.query(`alter role ${role.name} login`);
    expect(await face.list(store, {})).toEqual({ data: [rex] });
    const name = new URL(urlOf(database)).pathname.slice(1);
    await endSessions(session);
    await session.end();
    await onServer(`alter database ${name} rename to ${name}_away`);
    const isAway = async () => expect(await face.list(store, {})).toEqual(unavailable);
    await isAway().finally(() => onServer(`alter database ${name}_away rename to ${name}`));
    expect(await face.list(store, {})).toEqual({ data: [rex] });
  });

  test('a column that changes its type is not noticed (0A000)', async () => {
    expect(await face.find(store, '1')).toEqual({ data: rex });
    await session.query('alter table pet alter column name type varchar');
    expect(await face.find(store, '1')).toEqual({ data: rex });
    expect(await face.list(store, {})).toEqual({ data: [rex] });
  });

  test('statements that a session has forgotten are prepared again (26000)', async () => {
    const ask = async () => [await face.list(store, {}), await face.find(store, '1')];
    const answers = await ask();
    // On both connections of the pool, whichever is taken next.
    const deallocate = () => store.database.orm.em.fork().transactional((em) => em.execute('deallocate all'));
    await Promise.all([deallocate(), deallocate()]);
    expect(await ask()).toEqual(answers);
    expect(await face.create(store, { name: 'Bella', categoryId: 5 })).toMatchObject({ data: { name: 'Bella' } });
    await Promise.all([deallocate(), deallocate()]);
    expect(await face.create(store, { name: 'Tom', categoryId: 5 })).toMatchObject({ data: { name: 'Tom' } });
    expect(await sql(store.database, 'select name from pet order by id')).toEqual([['Rex'], ['Bella'], ['Tom']]);
  });
});

const onOwnSessions = ownsSessions ? describe.each(faces) : describe.skip.each(faces);

onOwnSessions(
  'a PostgreSQL that takes no more writes, by $name (PostgreSQL only, and not through a pooler: whose sessions they are)',
  (face) => {
    let store: Store;
    beforeEach(async () => {
      store = await startStore({ DATABASE_POOL_MAX: '4' });
    });
    afterEach(() => store.close());

    /** As when the server behind an address has become a standby: all sessions that are open now go there. */
    async function makeSessionsReadOnly(): Promise<void> {
      const text = `select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.2)`;
      // The connection of the checks is as old as the pool's.
      const { checks } = store.database as unknown as { checks: Pick<Database, 'rows'> };
      await Promise.all([
        ...Array.from({ length: 4 }, () => sql(store.database, text)),
        checks.rows({ name: '', text }, []),
      ]);
    }

    test('the first creation is refused, the next one goes to a server that takes writes; readiness notices, too', async () => {
      await makeSessionsReadOnly();
      expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toMatchObject({ status: 503 });
      for (let time = 1; time <= 8; time += 1) {
        expect(await face.create(store, { name: `Rex ${time}`, categoryId: 5 })).toHaveProperty('data');
      }
      const text = `select count(*) from pg_stat_activity where datname = current_database() and state = 'idle'`;
      expect(Number((await sql<[string]>(store.database, text))[0]?.[0])).toBeLessThanOrEqual(4);

      await makeSessionsReadOnly();
      expect((await send(store.origin, { path: '/readyz' })).status).toBe(503);
      expect((await send(store.origin, { path: '/readyz' })).status).toBe(200);
      expect(await face.create(store, { name: 'Bella', categoryId: 5 })).toHaveProperty('data');
    });
  },
);
