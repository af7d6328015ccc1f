import { readFileSync } from 'node:fs';
import {
  DeprecatedCall,
  DeprecationUsage,
} from '#engine/access/deprecations/usage.js';
import { createSecret } from '#engine/access/keys/secret.js';
import { Unavailable } from '#engine/errors.js';
import { sql, whileReadsFail } from '../support/database-access.ts';
import type { HttpResponse } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, type Store, storeForAll } from '../support/store.ts';

/**
 * The responses of getPet announce its removal. Calls of getPet, and no others,
 * are counted.
 */

let rex: { id: number };
const store = storeForAll({}, async () => {
  rex = (
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name: 'Rex', categoryId: 1 },
    })
  ).json;
});

const { responses } = JSON.parse(readFileSync('schema/openapi.json', 'utf8'))
  .paths['/pets/{petId}'].get;

type Target = Pick<Store, 'origin' | 'key'>;

/** Requests for every response of getPet in the contract, by status. */
const responsesByStatus: Record<
  string,
  (path: string) => Promise<{ origin: string; response: HttpResponse }>
> = {
  200: (path) => fetchPet(store, path),
  304: (path) => fetchPet(store, path, { 'if-none-match': '*' }),
  // Without a valid Host, no header can name the service's address.
  400: async (path) => ({
    ...(await fetchPet(store, path, { host: 'a b' })),
    origin: 'http://localhost',
  }),
  401: (path) => fetchPet({ ...store, key: 'x' }, path),
  404: () => fetchPet(store, '/v1/pets/0'),
  429: (path) =>
    onNode(store, { AUTH_FAILURES_PER_MINUTE: '1' }, async (node) => {
      const guess = () => fetchPet({ ...node, key: createSecret() }, path);
      await guess();
      return guess();
    }),
  500: (path) =>
    whileReadsFail(store.database, 'XX000', () => fetchPet(store, path)),
  503: (path) =>
    whileReadsFail(store.database, '57P03', () => fetchPet(store, path)),
};

async function fetchPet({ origin, key }: Target, path: string, headers = {}) {
  return { origin, response: await rest({ origin, key }, path, { headers }) };
}

test('the table has every response of getPet', () => {
  // A key may always read; a token may not (test/features/tokens).
  const { 403: _, ...others } = responses;
  expect(Object.keys(others)).toEqual(Object.keys(responsesByStatus));
});

test.each(Object.entries(responsesByStatus))(
  '%s of getPet has the headers of its deprecation, and the contract documents them',
  async (status, request) => {
    const { origin, response } = await request(`/v1/pets/${rex.id}`);
    expect(response.status).toBe(Number(status));
    const { deprecation, sunset, link } = response.headers;
    expect({ deprecation, sunset, link }).toEqual({
      deprecation: `@${Date.UTC(2026, 10, 20) / 1000}`,
      sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
      link: `<${origin}/v1/pets>; rel="successor-version"`,
    });
    expect(Object.keys(responses[status].headers)).toEqual(
      expect.arrayContaining(['Deprecation', 'Sunset', 'Link']),
    );
  },
);

test('only calls of getPet are counted as such', async () => {
  const { id, key } = await store.keys.issue({ name: 'shop' });
  // A node writes its counts when it is closed.
  await onNode({ ...store, key }, {}, async (node) => {
    for (const path of [
      `/v1/pets/${rex.id}`,
      '/v1/pets/0',
      '/v1/pets/',
      '/v1/pets/?x',
      '/v1/pets',
    ])
      await rest(node, path);
    await rest(node, '/v1/pets/', { method: 'OPTIONS' });
  });
  const counted = await sql(
    store.database,
    'select operation, calls from deprecated_call where key_id = $1',
    [id],
  );
  expect(counted).toEqual([['getPet', '2']]);
});

test('a call is never counted twice, and is counted later when the database has stored nothing', async () => {
  const { database } = store;
  const { rows } = database;
  const usage = new DeprecationUsage(database, []);
  const call = () =>
    usage.called(
      { id: 77, name: 'shop', scopes: ['read'] },
      'getPet',
      new Date('2030-12-05'),
    );
  const counted = async () =>
    (await database.orm.em.fork().findOne(DeprecatedCall, { keyId: 77 }))
      ?.calls;
  const flushWith = async (failing: typeof rows) => {
    database.rows = failing;
    await usage.calls.flush().catch(() => undefined);
    database.rows = rows;
    await usage.calls.flush();
  };
  call();
  await flushWith(async (...statement) => {
    await rows.apply(database, statement);
    throw Unavailable.outcomeUnknown();
  });
  expect(await counted()).toBe(1n);
  call();
  await flushWith(() => Promise.reject(Unavailable.late()));
  expect(await counted()).toBe(2n);
});
