// runs: embedded, postgres, pgbouncer

import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { chipOf, passports, plain } from './passports/passports.module.ts';

/** Values that another program has stored, and the service cannot show. */

const store = storeForAll({}, undefined, { more: [passports] });

beforeEach(() => sql(store.database, 'delete from passport'));

async function add(at: number, issuedOn: string, bornOn?: string) {
  const json = { ...plain, chip: chipOf(at), issuedOn };
  const { json: added } = await rest(store, '/v1/passports', {
    method: 'POST',
    json,
  });
  if (bornOn)
    await sql(
      store.database,
      'update passport set born_on = $2::date where id = $1',
      [added.id, bornOn],
    );
  return added;
}

test('a row that cannot be shown fails its own pages, and no value moves to another row', async () => {
  const first = await add(1, '2026-01-01');
  const foreign = await add(2, '2026-02-02');
  const third = await add(3, '2026-03-03');
  const endless = `update passport set issued_on = 'infinity' where id = ${foreign.id}`;
  await sql(store.database, endless);
  const paths = [
    '/v1/passports',
    '/v1/passports?sort=issuedOn',
    `/v1/passports/${foreign.id}`,
  ];
  for (const path of paths) {
    const { status, json } = await rest(store, path);
    expect([status, json.code]).toEqual([500, 'INTERNAL_SERVER_ERROR']);
  }
  const query = '{ passports { id issuedOn } }';
  const { errors } = await graphqlText(store, { query });
  expect(errors?.[0]?.extensions.code).toBe('INTERNAL_SERVER_ERROR');
  // They share a statement with the pages and items that fail.
  const answers = await Promise.all([
    rest(store, '/v1/passports'),
    rest(store, '/v1/passports?limit=1'),
    rest(store, `/v1/passports?after=${foreign.id}`),
    rest(store, `/v1/passports/${foreign.id}`),
    rest(store, `/v1/passports/${third.id}`),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([
    500, 200, 200, 500, 200,
  ]);
  const [, one, later, , item] = answers;
  expect([one?.json, later?.json, item?.json]).toEqual([
    [first],
    [third],
    third,
  ]);
});

test('a live list ends with an error at a row that cannot be shown, in both APIs', async () => {
  const { id } = await add(5, '2026-05-05', 'infinity');
  const after = id - 1;
  const query = `subscription { passportAdded(after: "${after}") { id bornOn } }`;
  for (const request of [
    { method: 'GET', path: `/v1/passports?after=${after}` },
    { body: JSON.stringify({ query }) },
  ]) {
    const stream = await openStream(store, request);
    expect(await stream.ended).toBe('whole');
    expect(stream.text).toContain('INTERNAL_SERVER_ERROR');
    expect(stream.text).not.toContain(`id: ${id}`);
  }
});

test.each(['infinity', '-infinity', '12026-01-01'])(
  'a nullable day %s is not shown as null',
  async (day) => {
    const { id } = await add(4, '2026-04-04', day);
    const { status } = await rest(store, `/v1/passports/${id}`);
    expect(status).toBe(500);
  },
);

test('a word of an enumeration with a comma moves no other', async () => {
  await store.empty();
  const names = ['Rex', 'Max', 'Tom', 'Ida'];
  for (const name of names)
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name, categoryId: 1 },
    });
  const [constraint] = (
    await sql<[string]>(
      store.database,
      "select conname from pg_constraint where conrelid = 'pet'::regclass and contype = 'c'",
    )
  ).flat();
  await sql(store.database, `alter table pet drop constraint "${constraint}"`);
  await sql(
    store.database,
    "update pet set status = 'sold,sold' where name = 'Tom'",
  );
  const [all, first] = await Promise.all([
    rest(store, '/v1/pets'),
    rest(store, '/v1/pets?limit=1'),
  ]);
  expect(all?.status).toBe(500);
  expect(first?.json).toMatchObject([{ name: 'Rex', status: 'available' }]);
});
