import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import {
  eventually,
  onPlainPostgres,
  onPostgres,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { openSession } from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const database = databaseForEach();

(onPostgres ? test : test.skip)(
  'a creation waits for one with a smaller id that another node has not committed yet (PostgreSQL only: the embedded store has one backend)',
  async () => {
    const store = await startStore(
      {},
      { database: { env: database.env, drop: async () => undefined } },
    );
    const otherNode = await openSession(database);
    await otherNode.query(
      "begin; select pg_advisory_xact_lock(hashtext('pet'))",
    );
    const insert =
      "insert into pet (name, category_id, status) values ('first', 1, 'sold') returning id";
    const first = await otherNode.query(insert);
    const creation = rest(store, '/v1/pets', {
      method: 'POST',
      json: { name: 'second', categoryId: 2 },
    });

    const waiting =
      "select 1 from pg_locks where locktype = 'advisory' and not granted";
    const waits = eventually(
      async () => (await sql(store.database, waiting)).length > 0,
    ).then(() => 'waits');
    expect(await Promise.race([creation.then(() => 'created'), waits])).toBe(
      'waits',
    );
    // A list of a sharded table waits as well.
    if (typeof citusLayout !== 'number')
      expect((await rest(store, '/v1/pets')).json).toEqual([]);
    await otherNode.query('commit');
    await otherNode.end();

    const second = (await creation).json;
    expect(BigInt(second.id)).toBeGreaterThan(BigInt(first.rows[0].id));
    expect((await rest(store, '/v1/pets')).json).toMatchObject([
      { name: 'first' },
      { name: 'second' },
    ]);
    await store.close();
  },
);

(onPlainPostgres ? test : test.skip)(
  'a creation waits for one with an idempotency key that another node has not committed yet (PostgreSQL only, not Citus, whose tables take no trigger)',
  async () => {
    const given = { env: database.env, drop: async () => undefined };
    const [one, other] = [
      await startStore({}, { database: given }),
      await startStore({}, { database: given }),
    ];
    const session = await openSession(database);
    try {
      await session.query(`
        create function hold() returns trigger language plpgsql as
          'begin perform pg_advisory_xact_lock(4711); return new; end';
        create trigger hold before insert on idempotency_key for each row execute function hold();
        select pg_advisory_lock(4711)`);
      const waiting = async () =>
        Number(
          (
            await session.query(
              "select count(*) from pg_locks where locktype = 'advisory' and not granted",
            )
          ).rows[0].count,
        );
      const keyed = rest(one, '/v1/pets', {
        method: 'POST',
        json: { name: 'first', categoryId: 1 },
        headers: { 'idempotency-key': 'once' },
      });
      await eventually(async () => (await waiting()) === 1);
      const plain = rest(other, '/v1/pets', {
        method: 'POST',
        json: { name: 'second', categoryId: 2 },
      });
      const waits = eventually(async () => (await waiting()) === 2);
      expect(
        await Promise.race([
          plain.then(() => 'created'),
          waits.then(() => 'waits'),
        ]),
      ).toBe('waits');
      await session.query('select pg_advisory_unlock(4711)');
      const [first, second] = [(await keyed).json, (await plain).json];
      expect(BigInt(second.id)).toBeGreaterThan(BigInt(first.id));
    } finally {
      await session.end();
      await one.close();
      await other.close();
    }
  },
);
