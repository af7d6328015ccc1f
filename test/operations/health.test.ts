import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { afterAll, afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { eventually, killAll, onPostgres, startServer } from '../support/process.ts';
import { Road } from '../support/road.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(killAll);
afterAll(() => database.drop());

const seen = ({ status, text }: HttpResponse) => ({ status, body: JSON.parse(text) });

test('a server is alive and ready, and says so without a key', async () => {
  const { origin } = await startServer(database.env);
  for (const path of ['/livez', '/readyz']) {
    expect(seen(await send(origin, { path }))).toEqual({ status: 200, body: { status: 'ok' } });
  }
});

const onServer = onPostgres ? test : test.skip;

onServer('without its database it is alive, not ready, and recovers (skipped on the embedded store)', async () => {
  const { DATABASE_URL } = database.env as { DATABASE_URL: string };
  const road = new Road(new URL(DATABASE_URL));
  await road.open();
  const key = 'a-key-for-these-tests-and-no-others';
  const { origin, stop } = await startServer({ DATABASE_URL: road.url, BOOTSTRAP_API_KEY: key });
  const authorization = `Bearer ${key}`;
  const list = () => send(origin, { path: '/v1/pets', headers: { authorization } });
  expect((await list()).status).toBe(200);

  road.cut();
  for (const answer of [await send(origin, { path: '/readyz' }), await list()]) {
    expect(seen(answer)).toEqual({
      status: 503,
      body: { code: 'SERVICE_UNAVAILABLE', status: 503, message: expect.stringContaining('database') },
    });
    expect(answer.headers['retry-after']).toBe('1');
  }
  expect((await send(origin, { path: '/livez' })).status).toBe(200);

  await road.open();
  await eventually(async () => (await send(origin, { path: '/readyz' })).status === 200);
  expect((await list()).status).toBe(200);
  const { code, stderr } = await stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  road.cut();
});
