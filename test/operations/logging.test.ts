import { databaseForAll } from '../support/each.ts';
import { send } from '../support/http.ts';
import { beforeAll, expect, test } from '../support/jest.ts';
import { eventually, type ServerProcess, startServer } from '../support/process.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForAll();
let server: ServerProcess;
beforeAll(async () => {
  server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, LOG_LEVEL: 'trace' });
});

test('a server is alive and ready, and says so without a key', async () => {
  for (const path of ['/livez', '/readyz']) {
    const { status, text } = await send(server.origin, { path });
    expect([status, text]).toEqual([200, '{"status":"ok"}']);
  }
});

test('a line has no more of a path than 256 characters, and nothing of a key in it', async () => {
  const long = `/v1/${'x'.repeat(5000)}`;
  const secret = `ask_${'y'.repeat(49)}`;
  const encoded = `/v1/%61sk%5f${'y'.repeat(49)}`;
  const paths = { encoded, long, key: `/v1/${secret}`, split: `/v1/${'x'.repeat(220)}/${secret}` };
  for (const [id, path] of Object.entries(paths)) await send(server.origin, { path, headers: { 'x-request-id': id } });
  await eventually(async () => server.output.stdout.includes('"split","req"'));
  const lines = server.output.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  const pathOf = (id: string) => answered.find(({ reqId }) => reqId === id).req.path;
  expect(pathOf('long')).toBe(long.slice(0, 256));
  expect([pathOf('key'), pathOf('encoded')]).toEqual(['/v1/ask_...', '/v1/ask_...']);
  expect(pathOf('split')).toBe(`/v1/${'x'.repeat(220)}/ask_...`);
});

test('logs are JSON lines, one per request, with its id and without any key', async () => {
  const authorization = `Bearer ${key}`;
  const wrong = `ask_${'x'.repeat(49)}`;
  const json = { authorization, 'content-type': 'application/json' };
  const query = '{ pets(status: broken) { id } }';
  await send(server.origin, {
    path: `/v1/pets?api_key=${key}&limit=1`,
    headers: { authorization, 'x-request-id': 'one' },
  });
  await send(server.origin, { path: `/v1/pets?key=${wrong}`, headers: { authorization: `Bearer ${wrong}` } });
  await send(server.origin, { path: `/v1/nothing?${key}`, headers: { authorization: `Basic ${key}` } });
  await send(server.origin, { method: 'POST', path: '/v1/pets', headers: json, body: '{' });
  await send(server.origin, { method: 'POST', path: '/graphql', headers: json, body: JSON.stringify({ query }) });
  await send(server.origin, { path: `/%zz?${key}`, headers: { authorization } });
  const { code, stdout, stderr } = await server.stop();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  expect(answered.map(({ req, status }) => `${req.path} ${status}`)).toContain('/%zz 404');
  expect(answered.find(({ reqId }) => reqId === 'one')).toMatchObject({
    level: 30,
    req: { method: 'GET', path: '/v1/pets' },
    status: 200,
    ms: expect.any(Number),
    key: 0,
  });
  for (const { reqId, req } of answered)
    expect({ reqId, req }).toEqual({ reqId: expect.any(String), req: expect.anything() });
  expect(new Set(answered.map(({ reqId }) => reqId)).size).toBeGreaterThanOrEqual(6);
  expect(stdout).not.toContain(key);
  expect(stdout).not.toContain(wrong);
});
