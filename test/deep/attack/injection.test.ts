import { sql } from '../../support/database-access.ts';
import { faces } from '../../support/faces.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** SQL in every parameter of both faces: data where any text is data, refused everywhere else, run nowhere. */
const store = storeForAll({}, async () => {});
beforeEach(async () => {
  await store.empty();
  await sql(store.database, "insert into pet (name, category_id, status) values ('only one', 1, 'sold')");
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

async function untouched(): Promise<void> {
  expect(await faces[0]?.list(store, {})).toEqual({ data: [expect.objectContaining({ name: 'only one' })] });
  expect((await sql(store.database, 'select 1 from api_key')).length).toBeGreaterThan(0);
}

describe.each(payloads)('%j', (payload) => {
  const encoded = encodeURIComponent(payload);

  test('as a parameter of REST is refused, not found, or ignored', async () => {
    for (const parameter of ['limit', 'status', 'after']) {
      const { status, json } = await rest(store, `/v1/pets?${parameter}=${encoded}`);
      expect({ status, code: json.code }).toEqual({ status: 400, code: 'BAD_USER_INPUT' });
    }
    expect((await rest(store, `/v1/pets/${encoded}`)).status).toBe(404);
    expect((await rest(store, `/v1/pets?${encoded}=${encoded}&name=${encoded}`)).json).toHaveLength(1);
    await untouched();
  });

  test('as categoryId or status of a new animal is refused, by both faces', async () => {
    for (const face of faces) {
      expect(await face.create(store, { name: 'x', categoryId: payload })).toMatchObject({ status: 400 });
      expect(await face.create(store, { name: 'x', categoryId: 1, status: payload })).toMatchObject({ status: 400 });
    }
    await untouched();
  });

  test('as after, status, id or limit of GraphQL is refused or finds nothing', async () => {
    const declarations = '$after: ID, $status: PetStatus, $limit: Int';
    for (const variables of [{ after: payload }, { status: payload }, { limit: payload }]) {
      const query = `query (${declarations}) { pets(after: $after, status: $status, limit: $limit) { id } }`;
      const { errors } = await graphqlText(store, { query, variables });
      expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', status: 400 });
    }
    expect(
      await graphqlText(store, { query: 'query ($id: ID!) { pet(id: $id) { id } }', variables: { id: payload } }),
    ).toMatchObject({ data: { pet: null } });
    const literal = `{ petsConnection(after: ${JSON.stringify(payload)}) { edges { cursor } } }`;
    expect((await graphqlText(store, { query: literal })).errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
    await untouched();
  });

  test.each(faces)('as a name is kept exactly, through $name', async (face) => {
    expect(await face.create(store, { name: payload, categoryId: 1 })).toMatchObject({ data: { name: payload } });
    expect(await face.list(store, { status: 'available' })).toMatchObject({ data: [{ name: payload }] });
  });

  test('as a key is refused', async () => {
    const authorization = `Bearer ${payload}`;
    // What no header can carry is not sent.
    if (/[^\x20-\x7e]/.test(payload)) return;
    for (const header of [authorization, `Bearer ${store.key}${payload}`]) {
      expect((await rest(store, '/v1/pets', { key: null, headers: { authorization: header } })).status).toBe(401);
    }
    await untouched();
  });
});
