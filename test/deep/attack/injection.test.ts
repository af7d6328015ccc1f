import { apis } from '../../support/apis.ts';
import { sql } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * SQL in every parameter of both APIs: it is stored as text, refused or
 * ignored, and never runs.
 */
const store = storeForAll();
beforeEach(async () => {
  await store.empty();
  await sql(
    store.database,
    "insert into pet (name, category_id, status) values ('only one', 1, 'sold')",
  );
});

const payloads = [
  "' OR '1'='1",
  "'; DROP TABLE pet; --",
  '1; SELECT pg_sleep(30)',
  "' UNION SELECT hash, name, id, scope FROM api_key --",
  '$1; drop table pet',
  '$$; drop table pet; $$',
  "E'\\\\x27'; drop table pet",
  "sold'::text || (select key from api_key)",
  '{sold,available}',
  '%27%20OR%201=1',
  '\u02bc OR 1=1',
];

const list = `query ($after: ID, $status: PetStatus, $limit: Int) {
  pets(after: $after, status: $status, limit: $limit) { id }
}`;

describe.each(payloads)('%j', (payload) => {
  const encoded = encodeURIComponent(payload);
  afterEach(async () => {
    const [first, ...names] = await sql(
      store.database,
      'select name from pet order by id',
    );
    expect([first, names.every(([name]) => name === payload)]).toEqual([
      ['only one'],
      true,
    ]);
    expect(
      (await sql(store.database, 'select 1 from api_key')).length,
    ).toBeGreaterThan(0);
  });

  test('as a parameter is refused, finds nothing, or is ignored', async () => {
    for (const parameter of ['limit', 'status', 'after']) {
      const { status, json } = await rest(
        store,
        `/v1/pets?${parameter}=${encoded}`,
      );
      expect({ status, code: json.code }).toEqual({
        status: 400,
        code: 'BAD_USER_INPUT',
      });
      const { errors } = await graphqlText(store, {
        query: list,
        variables: { [parameter]: payload },
      });
      expect(errors?.[0]?.extensions).toEqual({
        code: 'BAD_USER_INPUT',
        status: 400,
      });
    }
    for (const api of apis)
      expect(await api.find(store, payload)).toEqual({ data: null });
    expect(
      (await rest(store, `/v1/pets?${encoded}=${encoded}&name=${encoded}`))
        .json,
    ).toHaveLength(1);
    const literal = `{ petsConnection(after: ${JSON.stringify(payload)}) { edges { cursor } } }`;
    expect(
      (await graphqlText(store, { query: literal })).errors?.[0]?.extensions
        .code,
    ).toBe('BAD_USER_INPUT');
  });

  test.each(apis)(
    'of a new animal is kept exactly as a name and refused elsewhere, through $name',
    async (api) => {
      expect(
        await api.create(store, { name: 'x', categoryId: payload }),
      ).toMatchObject({ status: 400 });
      expect(
        await api.create(store, { name: 'x', categoryId: 1, status: payload }),
      ).toMatchObject({ status: 400 });
      expect(
        await api.create(store, { name: payload, categoryId: 1 }),
      ).toMatchObject({ data: { name: payload } });
      expect(await api.list(store, { status: 'available' })).toMatchObject({
        data: [{ name: payload }],
      });
    },
  );

  // A header cannot carry other characters.
  if (/^[\x20-\x7e]+$/.test(payload))
    test('as a key, or at the end of one, is refused', async () => {
      for (const key of [payload, `${store.key}${payload}`]) {
        expect((await rest(store, '/v1/pets', { key })).status).toBe(401);
      }
    });
});
