import { checkupsModule } from '../modules/checkups/checkups.module.ts';
import { graphqlText, graphqlThrice } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Scopes of one module, through both APIs. */

const store = storeForAll({}, addOne, { more: [checkupsModule] });

async function addOne() {
  const send = (path: string, json: object) =>
    rest(store, path, { method: 'POST', json });
  await send('/v1/pets', { name: 'Rex', categoryId: 1 });
  await send('/v1/checkups', { petId: 1, reason: 'x-ray' });
}

const keyWith = async (scope: string) =>
  (await store.keys.issue({ name: 'one test', scope })).key;

interface Operation {
  needs: string;
  rest?: [method: string, path: string, json?: object];
  graphql: string;
}

const newCheckup = { petId: 1, reason: 'tooth' };
/** Each with the scope that is named where all are missing. */
const operations: Operation[] = [
  { needs: 'pets:read', rest: ['GET', '/v1/pets'], graphql: '{ pets { id } }' },
  {
    needs: 'pets:read',
    rest: ['GET', '/v1/pets/1'],
    graphql: '{ petsConnection { edges { node { id } } } }',
  },
  {
    needs: 'pets:write',
    rest: ['POST', '/v1/pets', { name: 'Bello', categoryId: 1 }],
    graphql:
      'mutation { createPet(input: { name: "a", categoryId: 1 }) { __typename } }',
  },
  {
    needs: 'checkups:read',
    rest: ['GET', '/v1/checkups/1'],
    graphql: 'query { checkup(id: 1) { id } }',
  },
  {
    needs: 'checkups:write',
    rest: ['POST', '/v1/checkups', newCheckup],
    graphql:
      'mutation { createCheckup(input: { petId: 1, reason: "tooth" }) { __typename } }',
  },
  {
    needs: 'checkups:write',
    rest: ['PATCH', '/v1/checkups/1', { version: 1 }],
    graphql: 'mutation { removeCheckup(id: 77) }',
  },
];

const refusalOf = (scope: string) => ({
  code: 'FORBIDDEN',
  status: 403,
  message: `This needs an API key with the scope "${scope}".`,
});

async function refusals({ rest: request, graphql }: Operation, key: string) {
  const [method = '', path = '', json] = request ?? [];
  const { json: body } = await rest(store, path, { method, json, key });
  const { errors = [] } = await graphqlThrice(store, { query: graphql }, key);
  const [error] = errors;
  return [
    body?.code === 'FORBIDDEN' ? body : undefined,
    error?.extensions.code === 'FORBIDDEN'
      ? { ...error.extensions, message: error.message }
      : undefined,
  ];
}

test.each([
  ['read', 'pets:read checkups:read'],
  ['write', 'pets:read pets:write checkups:read checkups:write'],
  ['pets:read', 'pets:read'],
  ['pets:write', 'pets:read pets:write'],
  ['checkups:read', 'checkups:read'],
  ['checkups:write pets:read', 'checkups:read checkups:write pets:read'],
  ['store:write', ''],
])(
  'a key with %p may what needs %p, and is told what else needs',
  async (scope, permitted) => {
    const key = await keyWith(scope);
    for (const operation of operations) {
      const isPermitted = permitted.split(' ').includes(operation.needs);
      const refusal = isPermitted ? undefined : refusalOf(operation.needs);
      expect(await refusals(operation, key)).toEqual([refusal, refusal]);
    }
  },
);

test.each([
  // Both ways, and by the type alone.
  ['pets:read', '{ pets { id checkups { id } } }', 'checkups:read'],
  ['pets:read', '{ pets { checkups { __typename } } }', 'checkups:read'],
  ['checkups:read', '{ checkups { id pet { __typename } } }', 'pets:read'],
  [
    'checkups:read',
    '{ checkups { ...F } } fragment F on Checkup { pet { id } }',
    'pets:read',
  ],
  ['checkups:read', '{ checkups { id } pets { id } }', 'pets:read'],
  [
    'checkups:write',
    'mutation { createCheckup(input: { petId: 1, reason: "all or none" }) { id pet { id } } }',
    'pets:read',
  ],
])(
  'with %s %s is refused as a whole, for the lack of %s',
  async (scope, query, missing) => {
    const key = await keyWith(scope);
    const count = async () => (await rest(store, '/v1/checkups')).json.length;
    const before = await count();
    const { data, errors } = await graphqlThrice(store, { query }, key);
    const { message, ...extensions } = refusalOf(missing);
    expect([data, errors]).toEqual([undefined, [{ message, extensions }]]);
    expect(await count()).toBe(before);
    const both = await keyWith(`${scope} ${missing}`);
    const answer = await graphqlText(store, { query }, both);
    expect([answer.status, answer.errors]).toEqual([200, undefined]);
  },
);

test('a live list needs the scopes of all that its items have', async () => {
  const query = 'subscription { checkupAdded { id pet { id } } }';
  const accept = { accept: 'text/event-stream' };
  const key = await keyWith('checkups:read');
  const { text } = await graphqlText(store, { query }, key, accept);
  expect(text).toContain(JSON.stringify(refusalOf('pets:read').message));
  const { status } = await rest(store, '/v1/pets', { key, headers: accept });
  expect(status).toBe(403);
});

test('fields of another operation, and of a fragment that it alone has, need nothing', async () => {
  const query = `query A { pets { id } } query B { checkups { ...F } }
    fragment F on Checkup { pet { id } }`;
  const key = await keyWith('pets:read');
  const answer = (operationName: string) =>
    graphqlThrice(store, { query, operationName }, key);
  expect((await answer('A')).errors).toBeUndefined();
  expect((await answer('B')).errors).toMatchObject([
    { message: refusalOf('checkups:read').message },
  ]);
});

test('the scope all reads nothing by itself', async () => {
  const key = await keyWith('all pets:all');
  const [ofRest, ofGraphQL] = await refusals(operations[0] as Operation, key);
  expect(ofRest).toEqual(refusalOf('pets:read'));
  expect(ofGraphQL).toEqual(refusalOf('read'));
});

test('a key for one module sees the schema, and no unknown address', async () => {
  const key = await keyWith('pets:read');
  const query = '{ __schema { queryType { name } } __typename }';
  expect((await graphqlText(store, { query }, key)).errors).toBeUndefined();
  expect((await rest(store, '/v1/none', { key })).status).toBe(404);
});

test('both contracts name the scope of an operation', () => {
  const { paths = {} } = store.app.swagger() as unknown as {
    paths: Record<string, any>;
  };
  const scopes = [
    paths['/pets'].get,
    paths['/pets'].post,
    paths['/checkups/{checkupId}'].delete,
    paths['/store/orders'].get,
  ].map((operation) => operation['x-scope']);
  expect(scopes).toEqual([
    'pets:read',
    'pets:write',
    'checkups:write',
    'store:read',
  ]);
  const { graphqlSchema: schema } = store.app;
  const described = (type: string, field: string) =>
    (schema.getType(type) as any).getFields()[field].description;
  expect(described('Query', 'pets')).toMatch(/ Needs the scope `pets:read`\.$/);
  expect(described('Mutation', 'removeCheckup')).toMatch(/`checkups:write`\.$/);
  expect(described('Pet', 'checkups')).toMatch(/`checkups:read`\.$/);
});
