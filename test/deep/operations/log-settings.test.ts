import { databaseForEach } from '../../support/each.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { type Env, eventually, freePort, type ServerProcess, startServer } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { linesOf, startWorkers } from '../../support/workers.ts';

const database = databaseForEach();
const key = 'a-key-for-these-tests-and-no-others';

interface Operated {
  server: ServerProcess;
  /** The port for operators. */
  log(request?: Partial<HttpRequest>): Promise<{ status: number; json: unknown }>;
  put(settings: unknown): Promise<{ status: number; json: unknown }>;
}

async function start(env: Env = {}, run: (env: Env) => Promise<ServerProcess> = startServer): Promise<Operated> {
  const port = await freePort();
  const server = await run({ ...database.env, BOOTSTRAP_API_KEY: key, OPERATIONS_PORT: `${port}`, ...env });
  const log = async (request: Partial<HttpRequest> = {}) => {
    const { status, text } = await send(`http://127.0.0.1:${port}`, { path: '/log', ...request });
    return { status, json: JSON.parse(text) };
  };
  const headers = { 'content-type': 'application/json' };
  const put = (settings: unknown) => log({ method: 'PUT', headers, body: JSON.stringify(settings) });
  return { server, log, put };
}

const paths = (text: string, path: string) =>
  linesOf(text).filter(({ req, msg }) => msg === 'answered' && (req as { path: string }).path === path);

/** Asks on one connection, without a key, as often as it says. */
async function ask(server: ServerProcess, path: string, times: number): Promise<void> {
  const one = `GET ${path} HTTP/1.1\r\nHost: store.example\r\n\r\n`;
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  expect(await exchange(server, one.repeat(times - 1) + last)).toHaveLength(times);
}

test('the level is changed while the service runs, and a restart goes back to the configuration', async () => {
  const { server, log, put } = await start({ LOG_LEVEL: 'warn' });
  expect(await log()).toEqual({ status: 200, json: { level: 'warn', sample: 1 } });
  await send(server.origin, { path: '/v1/quiet' });
  expect(await put({ level: 'debug' })).toEqual({ status: 200, json: { level: 'debug', sample: 1 } });
  await send(server.origin, { path: '/v1/told' });
  expect(await put({ level: 'silent' })).toEqual({ status: 200, json: { level: 'silent', sample: 1 } });
  await send(server.origin, { path: '/v1/silent' });
  const { stdout } = await server.stop();
  expect([paths(stdout, '/v1/quiet'), paths(stdout, '/v1/silent')]).toEqual([[], []]);
  expect(paths(stdout, '/v1/told')).toHaveLength(1);
  expect(linesOf(stdout).filter(({ level, msg }) => level === 20 && msg === 'refused')).toHaveLength(1);
  const changes = linesOf(stdout).filter(({ msg }) => msg === 'log settings changed');
  expect(changes).toMatchObject([
    { level: 30, before: { level: 'warn', sample: 1 }, after: { level: 'debug', sample: 1 }, address: '127.0.0.1' },
    { level: 30, before: { level: 'debug', sample: 1 }, after: { level: 'silent', sample: 1 }, address: '127.0.0.1' },
  ]);
  const again = await start({ LOG_LEVEL: 'warn' });
  expect(await again.log()).toEqual({ status: 200, json: { level: 'warn', sample: 1 } });
  await again.server.stop();
});

test('a log that was silent from the start can be made to speak', async () => {
  const { server, put } = await start({ LOG_LEVEL: 'silent' });
  await send(server.origin, { path: '/livez' });
  expect(server.output.stdout).toBe('');
  await put({ level: 'info' });
  await send(server.origin, { path: '/v1/told' });
  const { stdout } = await server.stop();
  expect(linesOf(stdout).map(({ msg }) => msg)).toEqual(['log settings changed', 'answered', 'draining', 'closed']);
});

test('a sample leaves out requests without a fault alone, and lines that stand for others say for how many', async () => {
  const { server, put } = await start({ LOG_SAMPLE: '0' });
  await ask(server, '/livez', 50);
  await ask(server, '/v1/refused', 5);
  const failed = JSON.stringify({ query: '{ nothing }' });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  expect((await send(server.origin, { method: 'POST', path: '/graphql', headers, body: failed })).status).toBe(200);
  expect(await put({ sample: 0.5 })).toEqual({ status: 200, json: { level: 'info', sample: 0.5 } });
  await ask(server, '/v1/openapi.json', 400);
  await put({ sample: 1 });
  await ask(server, '/docs', 20);
  const { stdout } = await server.stop();
  expect(paths(stdout, '/livez')).toEqual([]);
  expect(paths(stdout, '/v1/refused').map(({ status, sample }) => ({ status, sample }))).toEqual(
    Array(5).fill({ status: 401, sample: undefined }),
  );
  expect(paths(stdout, '/graphql')).toMatchObject([{ status: 200, code: 'GRAPHQL_VALIDATION_FAILED' }]);
  const sampled = paths(stdout, '/v1/openapi.json');
  // Of 400 fair throws, fewer than 100 or more than 300 heads come once in 10^23.
  expect(sampled.length).toBeGreaterThan(100);
  expect(sampled.length).toBeLessThan(300);
  expect(new Set(sampled.map(({ sample }) => sample))).toEqual(new Set([0.5]));
  const all = paths(stdout, '/docs');
  expect(all).toHaveLength(20);
  expect(all.filter(({ sample }) => sample !== undefined)).toEqual([]);
});

test('with workers it holds for all of them, and for one that comes later', async () => {
  const { server, put } = await start({}, (env) => startWorkers(env, 2));
  expect(await put({ sample: 0 })).toMatchObject({ status: 200 });
  const told = async (path: string) => {
    for (let time = 1; time <= 6; time += 1) await exchange(server, requestText(`GET ${path}`));
  };
  // The message to the workers is on its way.
  await eventually(async () => {
    const before = paths(server.output.stdout, '/livez').length;
    await told('/livez');
    await told('/v1/mark');
    const marks = paths(server.output.stdout, '/v1/mark').length;
    await eventually(async () => paths(server.output.stdout, '/v1/mark').length > marks);
    return paths(server.output.stdout, '/livez').length === before;
  });
  const victim = linesOf(server.output.stdout).find(({ msg }) => msg === 'worker ready')?.workerPid as number;
  process.kill(victim, 'SIGKILL');
  const ready = () => linesOf(server.output.stdout).filter(({ msg }) => msg === 'worker ready');
  await eventually(async () => ready().length === 3);
  const late = ready()[2]?.worker;
  await eventually(async () => {
    await told('/docs');
    await told('/v1/later');
    return paths(server.output.stdout, '/v1/later').some(({ worker }) => worker === late);
  });
  const { stdout } = await server.stop();
  expect(paths(stdout, '/docs')).toEqual([]);
});

test('what is not a setting is refused with an Error body that says why; so is what a page could make a browser send', async () => {
  const { server, log, put } = await start();
  const bad = async (settings: unknown) => (await put(settings)).json;
  const refusal = (message: string) => ({ code: 'BAD_USER_INPUT', message, status: 400 });
  expect(await bad({ level: 'loud' })).toEqual(refusal('The body/level must be equal to one of the allowed values.'));
  expect(await bad({ sample: 2 })).toEqual(refusal('The body/sample must be <= 1.'));
  expect(await bad({ sample: '0.5' })).toEqual(refusal('The body/sample must be number.'));
  expect(await bad({ levle: 'info' })).toEqual(refusal('The body must NOT have additional properties.'));
  expect(await bad({})).toEqual(refusal('The body must NOT have fewer than 1 properties.'));
  expect(await bad([])).toEqual(refusal('The body must be object.'));

  const body = JSON.stringify({ level: 'silent' });
  const plain = { method: 'PUT', body, headers: { 'content-type': 'text/plain' } };
  expect(await log(plain)).toMatchObject({ status: 415, json: { code: 'UNSUPPORTED_MEDIA_TYPE' } });
  expect(await log({ ...plain, headers: {} })).toMatchObject({ status: 415 });
  const json = { 'content-type': 'application/json' };
  for (const host of ['shop.example', 'localhost.example:80', '127.0.0.1.example', '1.example']) {
    const named = { method: 'PUT', body, headers: { ...json, host } };
    expect(await log(named)).toMatchObject({ status: 403, json: { code: 'FORBIDDEN', status: 403 } });
  }
  expect(await log({ method: 'POST', body, headers: json })).toMatchObject({ status: 404 });
  const preflight = { origin: 'https://shop.example', 'access-control-request-method': 'PUT' };
  expect(await log({ method: 'OPTIONS', headers: preflight })).toMatchObject({ status: 404 });
  expect(await log()).toEqual({ status: 200, json: { level: 'info', sample: 1 } });
  // Nor is it there on the port for clients.
  const headers = { authorization: `Bearer ${key}` };
  expect((await send(server.origin, { path: '/log', headers })).status).toBe(404);
  expect((await server.stop()).stdout).not.toContain('log settings changed');
});
