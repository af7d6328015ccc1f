import { stock } from '../support/database-access.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

const path = (parameters: Record<string, string>) => `/graphql?${new URLSearchParams(parameters)}`;
const authorized = () => ({ authorization: `Bearer ${store.key}` });
const response = 'application/graphql-response+json';
const addRex = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

/** What is not of one moment. */
const lasting = ({ status, headers: { date, 'x-request-id': _id, ...headers } }: HttpResponse) => ({ status, headers });

test.each<[number, string, string, () => Record<string, string>]>([
  [200, 'a query', path({ query: '{ pets { id name } }' }), authorized],
  [
    200,
    'a query with a variable',
    path({ query: 'query ($n: Int) { pets(limit: $n) { id } }', variables: '{"n":2}' }),
    () => ({ ...authorized(), accept: response }),
  ],
  [200, 'a query that fails', path({ query: '{ pets(limit: 0) { id } }' }), authorized],
  [422, 'a query that is refused', path({ query: '{ nothing }' }), () => ({ ...authorized(), accept: response })],
  [400, 'no query', '/graphql', authorized],
  [400, 'variables that are none', path({ query: '{ pets { id } }', variables: '{' }), authorized],
  [401, 'a query without a key', path({ query: '{ pets { id } }' }), () => ({})],
  [405, 'a mutation', path({ query: addRex }), authorized],
  [415, 'a form', path({ query: '{ pets { id } }' }), () => ({ ...authorized(), 'content-type': 'text/plain' })],
  [200, 'the visit of a browser', '/graphql', () => ({ accept: 'text/html' })],
])('HEAD is answered as GET, %i, without a body: %s', async (status, _what, target, headersOf) => {
  for (let time = 0; time < 3; time += 1) {
    const [head, got] = [
      await send(store.origin, { method: 'HEAD', path: target, headers: headersOf() }),
      await send(store.origin, { method: 'GET', path: target, headers: headersOf() }),
    ];
    expect(lasting(head)).toEqual(lasting(got));
    expect([head.status, head.text, head.headers['content-length']]).toEqual([
      status,
      '',
      `${Buffer.byteLength(got.text)}`,
    ]);
  }
  expect((await rest(store, '/v1/pets')).json).toHaveLength(3);
});
