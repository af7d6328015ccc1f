// runs: embedded, plugins

import { apis } from '../support/apis.ts';
import { stock } from '../support/database-access.ts';
import { graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

let readKey: string;
const store = storeForAll({}, async () => {
  readKey = (await store.keys.issue({ name: 'frontend', scope: 'read' })).key;
  await stock(store.database, 2);
});

const forbidden = {
  code: 'FORBIDDEN',
  status: 403,
  message: 'This needs an API key with the scope "pets:write".',
};

test.each(apis)(
  'a key with the scope read lists and finds through $name, may not create, and creates nothing',
  async (api) => {
    const all = { data: [expect.anything(), expect.anything()] };
    expect(await api.list(store, {}, readKey)).toEqual(all);
    expect(await api.find(store, '1', readKey)).toEqual({
      data: expect.objectContaining({ id: '1' }),
    });
    expect(
      await api.create(store, { name: 'Rex', categoryId: 1 }, readKey),
    ).toEqual(forbidden);
    expect(await api.list(store, {})).toEqual(all);
  },
);

test.each<
  [string, number, { body?: string; headers?: Record<string, string> }]
>([
  ['pets', 403, {}],
  ['pets', 403, { body: '{"name":' }],
  ['pets', 403, { body: '{"name":1}' }],
  ['pets', 403, { body: `{"name":"${'x'.repeat(2_000_000)}"}` }],
  [
    'pets',
    403,
    { body: '<pet/>', headers: { 'content-type': 'application/xml' } },
  ],
  ['pets', 403, { body: 'x', headers: { 'content-encoding': 'gzip' } }],
  // A method that no key may use stays 405.
  ['pets/1', 405, {}],
])(
  'REST checks the scope before the body: POST %s is %i (%#)',
  async (path, expected, request) => {
    const { status, json } = await rest(store, `/v1/${path}`, {
      method: 'POST',
      ...request,
      key: readKey,
    });
    expect({ status, json }).toEqual({
      status: expected,
      json: expected === 403 ? forbidden : expect.anything(),
    });
  },
);

const creation = 'createPet(input: { name: "a", categoryId: 1 }) { id }';
test.each([
  `mutation { ${creation} }`,
  `mutation { pets: ${creation} }`,
  `mutation { ...F } fragment F on Mutation { ${creation} }`,
  // Values are checked later.
  'mutation { createPet(input: { name: "\\u0000", categoryId: "x" }) { id } }',
  `query A { __typename } mutation B { ${creation} }`,
])(
  'GraphQL refuses it as FORBIDDEN, interpreted and compiled: %s',
  async (query) => {
    const operationName = query.includes('mutation B') ? 'B' : undefined;
    const { data, errors } = await graphqlThrice(
      store,
      { query, operationName },
      readKey,
    );
    expect(data ?? null).toBeNull();
    const extensions = { code: 'FORBIDDEN', status: 403 };
    expect(errors).toEqual([
      expect.objectContaining({ message: forbidden.message, extensions }),
    ]);
  },
);
