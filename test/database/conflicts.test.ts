import { citusLayout } from '../support/citus.ts';
import { sql } from '../support/database-access.ts';
import { faces } from '../support/faces.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

const refusal = { code: 'SERVICE_UNAVAILABLE', status: 503, message: expect.any(String) };

const where = citusLayout ? { describe: describe.skip, test: test.skip } : { describe, test };

where.describe.each(faces)(
  'conflicts in the database, by $name (not on Citus: it has no triggers to cause them)',
  (face) => {
    let store: Store;
    beforeAll(async () => {
      store = await startStore();
      await sql(store.database, 'create sequence attempt');
      await sql(store.database, 'create table plan (failures int, state text)');
      await sql(
        store.database,
        `create function fail_as_planned() returns trigger language plpgsql as $$ begin
        if nextval('attempt') <= (select failures from plan) then
          raise exception 'this is a test' using errcode = (select state from plan);
        end if;
        return null;
      end $$`,
      );
      await sql(
        store.database,
        'create trigger fail before insert on pet for each statement execute function fail_as_planned()',
      );
    });
    afterAll(() => store.close());
    beforeEach(() => store.empty());

    /** The next statements that insert fail in this way. */
    async function fail(failures: number, state: string): Promise<void> {
      await sql(store.database, 'delete from plan');
      await sql(store.database, 'insert into plan values ($1, $2)', [failures, state]);
      await sql(store.database, 'alter sequence attempt restart');
    }

    const attempts = async () => Number((await sql<[string]>(store.database, "select nextval('attempt')"))[0]?.[0]) - 1;
    const names = async () =>
      (await sql<[string]>(store.database, 'select name from pet order by id')).map(([name]) => name);

    test.each(['40001', '40P01'])(
      'a creation that PostgreSQL undid (%s) is repeated up to three times',
      async (state) => {
        await fail(3, state);
        expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toMatchObject({ data: { name: 'Rex' } });
        expect(await attempts()).toBe(4);
        expect(await names()).toEqual(['Rex']);
      },
    );

    test.each(['40001', '40P01'])('then it is 503, and nothing is stored (%s)', async (state) => {
      await fail(100, state);
      expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toEqual(refusal);
      expect(await attempts()).toBe(4);
      expect(await names()).toEqual([]);
    });

    test.each(['08006', '40003'])('a creation with an unknown outcome (%s) is never repeated', async (state) => {
      await fail(1, state);
      expect(await face.create(store, { name: 'Rex', categoryId: 5 })).toEqual({
        ...refusal,
        message: expect.stringContaining('may have been'),
      });
      expect(await attempts()).toBe(1);
    });

    test('a batch is repeated as a whole: all are stored, once', async () => {
      await fail(2, '40001');
      const wanted = Array.from({ length: 40 }, (_, at) => `pet ${at}`);
      const created = await Promise.all(wanted.map((name) => face.create(store, { name, categoryId: 5 })));
      expect(created).toEqual(wanted.map((name) => ({ data: expect.objectContaining({ name }) })));
      expect((await names()).sort()).toEqual([...wanted].sort());
    });

    test('a read is repeated, too', async () => {
      await face.create(store, { name: 'Rex', categoryId: 5 });
      await sql(
        store.database,
        `create function failing() returns boolean language plpgsql volatile as $$ begin
        if nextval('attempt') <= (select failures from plan) then
          raise exception 'this is a test' using errcode = (select state from plan);
        end if;
        return true;
      end $$`,
      );
      await sql(store.database, 'alter table pet rename to pet_put_aside');
      await sql(store.database, 'create view pet as select * from pet_put_aside where failing()');
      try {
        await fail(3, '40001');
        expect(await face.list(store, {})).toMatchObject({ data: [{ name: 'Rex' }] });
        await fail(100, '40001');
        expect(await face.list(store, {})).toEqual(refusal);
        expect(await attempts()).toBe(4);
      } finally {
        await sql(store.database, 'drop view pet');
        await sql(store.database, 'alter table pet_put_aside rename to pet');
        await sql(store.database, 'drop function failing');
      }
    });
  },
);

where.test('after the last attempt a client may try again: it is told when (not on Citus)', async () => {
  const store = await startStore();
  await sql(
    store.database,
    `create function fail() returns trigger language plpgsql as $$ begin
      raise exception 'this is a test' using errcode = '40001'; end $$`,
  );
  await sql(store.database, 'create trigger fail before insert on pet for each statement execute function fail()');
  const refused = await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } });
  expect({ status: refused.status, advice: refused.headers['retry-after'] }).toEqual({ status: 503, advice: '1' });
  await store.close();
});
