import pg from 'pg';
import { citusLayout } from '../../support/citus.ts';
import { sql } from '../../support/database-access.ts';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { type Store, startStore } from '../../support/store.ts';

const onPostgres = process.env.TEST_DATABASE_URL ? describe : describe.skip;

onPostgres('ids appear in the order of their commits (skipped on the embedded store: it has one backend)', () => {
  let store: Store;
  let otherNode: pg.Client;
  beforeAll(async () => {
    store = await startStore();
    const [[name] = []] = await sql<[string]>(store.database, 'select current_database()');
    const url = new URL(process.env.TEST_DATABASE_URL ?? '');
    url.pathname = `/${name}`;
    otherNode = new pg.Client(url.href);
    await otherNode.connect();
  });
  afterAll(async () => {
    await otherNode.end();
    await store.close();
  });

  async function someoneWaits(): Promise<'waiting'> {
    const text = "select 1 from pg_locks where locktype = 'advisory' and not granted";
    while ((await sql(store.database, text)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    return 'waiting';
  }

  test('a creation waits for one with a smaller id that another node has not committed yet', async () => {
    await otherNode.query("begin; select pg_advisory_xact_lock(hashtext('pet'))");
    const first = await otherNode.query(
      "insert into pet (name, category_id, status) values ('first', 1, 'sold') returning id",
    );
    const creation = rest(store, '/v1/pets', { method: 'POST', json: { name: 'second', categoryId: 2 } });

    expect(await Promise.race([creation.then(() => 'created'), someoneWaits()])).toBe('waiting');
    // A list of a sharded table waits as well.
    if (typeof citusLayout !== 'number') expect((await rest(store, '/v1/pets')).json).toEqual([]);
    await otherNode.query('commit');

    const second = (await creation).json;
    expect(BigInt(second.id)).toBeGreaterThan(BigInt(first.rows[0].id));
    expect((await rest(store, '/v1/pets')).json).toMatchObject([{ name: 'first' }, { name: 'second' }]);
  });
});
