import { databaseForAll } from '../support/each.ts';
import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { startServer } from '../support/process.ts';
import { linesOf } from '../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForAll();

test('logs are JSON lines, one per request, with no more of a path than 256 characters and nothing of a key', async () => {
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, LOG_LEVEL: 'trace' });
  for (const path of ['/livez', '/readyz']) {
    expect(await send(server.origin, { path })).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  }
  const authorization = `Bearer ${key}`;
  const secret = `ask_${'y'.repeat(49)}`;
  const split = `/v1/${'x'.repeat(220)}/`;
  const requests: Array<[path: string, logged: string, status: number, headers?: Record<string, string>]> = [
    [`/v1/pets?api_key=${key}&limit=1`, '/v1/pets', 200],
    [`/v1/pets?key=${secret}`, '/v1/pets', 401, { authorization: `Bearer ${secret}` }],
    [`/v1/nothing?${key}`, '/v1/nothing', 401, { authorization: `Basic ${key}` }],
    [`/%zz?${key}`, '/%zz', 404],
    [`/v1/${'x'.repeat(5000)}`, `/v1/${'x'.repeat(252)}`, 404],
    [`/v1/${secret}`, '/v1/ask_...', 404],
    [`/v1/${secret.replace('ask_', '%61sk%5f')}`, '/v1/ask_...', 404],
    [`${split}${secret}`, `${split}ask_...`, 404],
  ];
  for (const [at, [path, , , headers]] of requests.entries()) {
    await send(server.origin, { path, headers: { authorization, 'x-request-id': `${at}`, ...headers } });
  }
  const { code, stdout, stderr } = await server.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const answered = linesOf(stdout).filter(({ msg, reqId }) => msg === 'answered' && /^\d$/.test(`${reqId}`));
  expect(answered).toMatchObject(
    requests.map(([, path, status], at) => ({ reqId: `${at}`, req: { method: 'GET', path }, status })),
  );
  expect(answered[0]).toMatchObject({ level: 30, ms: expect.any(Number), key: 0 });
  expect(stdout).not.toContain(key);
  expect(stdout).not.toContain('yyyy');
});
