// runs: embedded, postgres, pgbouncer

import { creators } from '../support/apis.ts';
import { sql } from '../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { storeForAll } from '../support/store.ts';

const where = citusLayout ? describe.skip : describe;

where(
  'conflicts in the database (not on Citus: it has no triggers to cause them)',
  () => {
    const store = storeForAll({}, async () => {
      for (const statement of [
        'create sequence attempt',
        'create table plan (failures int, state text)',
        `create function failing() returns boolean language plpgsql volatile as $$ begin
        if nextval('attempt') <= (select failures from plan) then
          raise exception 'this is a test' using errcode = (select state from plan);
        end if;
        return true;
      end $$`,
        'create function fail() returns trigger language plpgsql as $$ begin perform failing(); return null; end $$',
        'create trigger fail before insert on pet for each statement execute function fail()',
      ]) {
        await sql(store.database, statement);
      }
    });
    /** Makes the next inserting statements fail with this SQLSTATE. */
    async function fail(failures: number, state: string): Promise<void> {
      await sql(store.database, 'delete from plan');
      await sql(store.database, 'insert into plan values ($1, $2)', [
        failures,
        state,
      ]);
      await sql(store.database, 'alter sequence attempt restart');
    }

    beforeEach(async () => {
      await store.empty();
      await fail(0, '40001');
    });

    const attempts = async () =>
      Number(
        (
          await sql<[string]>(store.database, "select nextval('attempt')")
        )[0]?.[0],
      ) - 1;
    const names = async () =>
      (
        await sql<[string]>(store.database, 'select name from pet order by id')
      ).map(([name]) => name);
    const rex = { name: 'Rex', categoryId: 5 };
    const refusal = {
      code: 'SERVICE_UNAVAILABLE',
      status: 503,
      message: expect.any(String),
    };
    const stored = {
      outcome: expect.objectContaining({ name: 'Rex' }),
      retryAfter: undefined,
      replayed: undefined,
    };
    const refused = { outcome: refusal, retryAfter: 1, replayed: undefined };
    // The service does not repeat it, and its client must not repeat it either.
    const message =
      'The database did not say whether this was stored: it may have been. Look for it before you send it again.';
    const lost = {
      outcome: { ...refusal, message },
      retryAfter: undefined,
      replayed: undefined,
    };

    describe.each(creators)('through $name', ({ create }) => {
      test.each([
        ...['40001', '40P01'].flatMap((undone) => [
          { state: undone, times: 3, result: stored, tried: 4, names: ['Rex'] },
          { state: undone, times: 100, result: refused, tried: 4, names: [] },
        ]),
        ...['08006', '40003'].map((unknown) => ({
          state: unknown,
          times: 1,
          result: lost,
          tried: 1,
          names: [],
        })),
      ])(
        'a creation that fails $times times with $state is tried $tried times',
        async ({ state, times, ...expected }) => {
          await fail(times, state);
          const result = await create(store, rex);
          expect({
            result,
            tried: await attempts(),
            names: await names(),
          }).toEqual(expected);
        },
      );

      test('a batch is repeated as a whole: all are stored, once', async () => {
        await fail(2, '40001');
        const wanted = Array.from({ length: 40 }, (_, at) => `pet ${at}`);
        const created = await Promise.all(
          wanted.map((name) => create(store, { ...rex, name })),
        );
        expect(created).toMatchObject(
          wanted.map((name) => ({ outcome: { name } })),
        );
        expect((await names()).sort()).toEqual([...wanted].sort());
      });
    });

    test('a read is repeated after a conflict, too', async () => {
      await sql(store.database, 'alter table pet rename to pet_put_aside');
      await sql(
        store.database,
        'create view pet as select * from pet_put_aside where failing()',
      );
      await sql(
        store.database,
        `insert into pet_put_aside (name, category_id, status) values ('Rex', 5, 'sold')`,
      );
      try {
        await fail(3, '40001');
        expect(await rest(store, '/v1/pets')).toMatchObject({
          json: [{ name: 'Rex' }],
        });
        await fail(100, '40001');
        expect((await rest(store, '/v1/pets')).json).toEqual(refusal);
        expect(await attempts()).toBe(4);
      } finally {
        await sql(store.database, 'drop view pet');
        await sql(store.database, 'alter table pet_put_aside rename to pet');
      }
    });
  },
);
