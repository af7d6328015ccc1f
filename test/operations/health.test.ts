import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { afterAll, afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { killAll, startServer } from '../support/process.ts';

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
