import { readFileSync } from 'node:fs';
import { late, outcomeUnknown } from '../../packages/postgres/src/postgres-errors.ts';
import { DeprecationUsage } from '../../src/access/deprecations/usage.ts';
import { sql, whileReadsFail } from '../support/database-access.ts';
import type { HttpResponse } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, type Store, storeForAll } from '../support/store.ts';

/** What says that getPet will go away, and what must not say so. */

let rex: { id: number };
const store = storeForAll({}, async () => {
  rex = (await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } })).json;
});

const { responses } = JSON.parse(readFileSync('schema/openapi.json', 'utf8')).paths['/pets/{petId}'].get;

type Target = Pick<Store, 'origin' | 'key'>;

/** Every answer of getPet that the interface knows, and how to get it. */
const answers: Record<string, (path: string) => Promise<{ origin: string; answer: HttpResponse }>> = {
  200: (path) => asked(store, path),
  304: (path) => asked(store, path, { 'if-none-match': '*' }),
  401: (path) => asked({ ...store, key: 'x' }, path),
  404: () => asked(store, '/v1/pets/0'),
  429: (path) =>
    onNode(store, { QUOTA_PER_MINUTE: '1' }, async (node) => {
      await rest(node, path);
      return asked(node, path);
    }),
  500: (path) => whileReadsFail(store.database, 'XX000', () => asked(store, path)),
  503: (path) => whileReadsFail(store.database, '57P03', () => asked(store, path)),
};

async function asked({ origin, key }: Target, path: string, headers = {}) {
  return { origin, answer: await rest({ origin, key }, path, { headers }) };
}

test('every answer of getPet is known', () => {
  expect(Object.keys(responses)).toEqual(Object.keys(answers));
});

test.each(Object.entries(answers))(
  '%s of getPet tells what will become of it, and the document says so',
  async (status, how) => {
    const { origin, answer } = await how(`/v1/pets/${rex.id}`);
    expect(answer.status).toBe(Number(status));
    const { deprecation, sunset, link } = answer.headers;
    expect({ deprecation, sunset, link }).toEqual({
      deprecation: `@${Date.UTC(2026, 10, 20) / 1000}`,
      sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
      link: `<${origin}/v1/pets>; rel="successor-version"`,
    });
    expect(Object.keys(responses[status].headers)).toEqual(expect.arrayContaining(['Deprecation', 'Sunset', 'Link']));
  },
);

test('only calls of getPet are counted as such', async () => {
  const { id, key } = await store.keys.issue({ name: 'shop' });
  // What a node has counted is written when it is closed.
  await onNode({ ...store, key }, {}, async (node) => {
    for (const path of [`/v1/pets/${rex.id}`, '/v1/pets/', '/v1/pets/?x', '/v1/pets']) await rest(node, path);
    await rest(node, '/v1/pets/', { method: 'OPTIONS' });
  });
  const counted = await sql(store.database, 'select operation, calls from deprecated_call where key_id = $1', [id]);
  expect(counted).toEqual([['getPet', '1']]);
});

test('a call is never counted twice, and is not lost when the database says that it has stored nothing', async () => {
  const { database } = store;
  const { rows } = database;
  const usage = new DeprecationUsage(database);
  const call = () => usage.called({ id: 77, name: 'shop', scope: 'read' }, 'getPet', new Date('2030-12-05'));
  const counted = async () => (await usage.list()).find(({ keyId }) => keyId === 77)?.calls;
  const flushWith = async (answer: typeof rows) => {
    database.rows = answer;
    await usage.calls.flush().catch(() => undefined);
    database.rows = rows;
    await usage.calls.flush();
  };
  call();
  await flushWith(async (...statement) => {
    await rows.apply(database, statement);
    throw outcomeUnknown();
  });
  expect(await counted()).toBe(1n);
  call();
  await flushWith(() => Promise.reject(late()));
  expect(await counted()).toBe(2n);
});
