import { databaseForEach } from '../../support/each.ts';
import { graphqlText } from '../../support/graphql.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import { type Env, eventually, type ServerProcess } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { allUp, linesOf } from '../../support/workers.ts';

const database = databaseForEach();
const key = 'a-key-for-these-tests-and-no-others';
const json = { 'content-type': 'application/json' };

const start = (env: Env = {}) => startMeasured({ ...database.env, BOOTSTRAP_API_KEY: key, ...env });

async function log({ operations }: MeasuredServer, request: Partial<HttpRequest> = {}) {
  const { status, text } = await send(operations, { path: '/log', ...request });
  return { status, json: JSON.parse(text) };
}
const put = (server: MeasuredServer, settings: unknown) =>
  log(server, { method: 'PUT', headers: json, body: JSON.stringify(settings) });

const paths = (text: string, path: string) =>
  linesOf(text).filter(({ req, msg }) => msg === 'answered' && (req as { path: string }).path === path);

/** Asks on one connection, without a key, as often as it says. */
async function ask(server: ServerProcess, path: string, times: number): Promise<void> {
  const one = `GET ${path} HTTP/1.1\r\nHost: store.example\r\n\r\n`;
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  expect(await exchange(server, one.repeat(times - 1) + last)).toHaveLength(times);
}

test('the level is changed while the service runs, and a restart goes back to the configuration', async () => {
  const server = await start({ LOG_LEVEL: 'silent' });
  expect(await log(server)).toEqual({ status: 200, json: { level: 'silent', sample: 1 } });
  await send(server.origin, { path: '/v1/quiet' });
  expect(server.output.stdout).toBe('');
  expect(await put(server, { level: 'debug' })).toEqual({ status: 200, json: { level: 'debug', sample: 1 } });
  await send(server.origin, { path: '/v1/told' });
  expect(await put(server, { level: 'warn' })).toEqual({ status: 200, json: { level: 'warn', sample: 1 } });
  await send(server.origin, { path: '/v1/quiet' });
  const { stdout } = await server.stop();
  expect(paths(stdout, '/v1/quiet')).toEqual([]);
  expect(paths(stdout, '/v1/told')).toHaveLength(1);
  expect(linesOf(stdout).filter(({ level, msg }) => level === 20 && msg === 'refused')).toHaveLength(1);
  const changes = linesOf(stdout).filter(({ msg }) => msg === 'log settings changed');
  expect(changes).toMatchObject([
    { level: 30, before: { level: 'silent', sample: 1 }, after: { level: 'debug', sample: 1 }, address: '127.0.0.1' },
    { level: 30, before: { level: 'debug', sample: 1 }, after: { level: 'warn', sample: 1 }, address: '127.0.0.1' },
  ]);
  const again = await start({ LOG_LEVEL: 'warn' });
  expect(await log(again)).toEqual({ status: 200, json: { level: 'warn', sample: 1 } });
});

test('a sample leaves out requests without a fault alone, and lines that stand for others say for how many', async () => {
  const server = await start({ LOG_SAMPLE: '0' });
  await ask(server, '/livez', 50);
  await ask(server, '/v1/refused', 5);
  expect((await graphqlText(server, { query: '{ nothing }' })).status).toBe(200);
  expect(await put(server, { sample: 0.5 })).toEqual({ status: 200, json: { level: 'info', sample: 0.5 } });
  await ask(server, '/v1/openapi.json', 400);
  await put(server, { sample: 1 });
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
  const server = await start({ WORKERS: '2' });
  await allUp(server);
  expect(await put(server, { sample: 0 })).toMatchObject({ status: 200 });
  const askAll = async (path: string) => {
    for (let time = 1; time <= 6; time += 1) await exchange(server, requestText(`GET ${path}`));
  };
  // The message to the workers is on its way. A refusal has its line even so, after those that were before it.
  await eventually(async () => {
    const [lines, marks] = [
      paths(server.output.stdout, '/livez').length,
      paths(server.output.stdout, '/v1/mark').length,
    ];
    await askAll('/livez');
    await askAll('/v1/mark');
    await eventually(async () => paths(server.output.stdout, '/v1/mark').length === marks + 6);
    return paths(server.output.stdout, '/livez').length === lines;
  });
  const ready = () => linesOf(server.output.stdout).filter(({ msg }) => msg === 'worker ready');
  process.kill(ready()[0]?.workerPid as number, 'SIGKILL');
  await eventually(async () => ready().length === 3);
  await eventually(async () => {
    await askAll('/docs');
    await askAll('/v1/later');
    return paths(server.output.stdout, '/v1/later').some(({ worker }) => worker === ready()[2]?.worker);
  });
  const { stdout } = await server.stop();
  expect(paths(stdout, '/docs')).toEqual([]);
});

test('what is not a setting is refused with an Error body that says why; so is what a page could make a browser send', async () => {
  const server = await start();
  for (const [settings, why] of [
    [{ level: 'loud' }, '/level must be equal to one of the allowed values.'],
    [{ sample: 2 }, '/sample must be <= 1.'],
    [{ sample: '0.5' }, '/sample must be number.'],
    [{ levle: 'info' }, ' must NOT have additional properties.'],
    [{}, ' must NOT have fewer than 1 properties.'],
    [[], ' must be object.'],
  ]) {
    const refusal = { code: 'BAD_USER_INPUT', message: `The body${why}`, status: 400 };
    expect(await put(server, settings)).toEqual({ status: 400, json: refusal });
  }
  const body = JSON.stringify({ level: 'silent' });
  const plain = { method: 'PUT', body, headers: { 'content-type': 'text/plain' } };
  expect(await log(server, plain)).toMatchObject({ status: 415, json: { code: 'UNSUPPORTED_MEDIA_TYPE' } });
  expect(await log(server, { ...plain, headers: {} })).toMatchObject({ status: 415 });
  const foreign = { method: 'PUT', body, headers: { ...json, host: 'shop.example' } };
  expect(await log(server, foreign)).toMatchObject({ status: 403, json: { code: 'FORBIDDEN', status: 403 } });
  expect(await log(server, { method: 'POST', body, headers: json })).toMatchObject({ status: 404 });
  const preflight = { origin: 'https://shop.example', 'access-control-request-method': 'PUT' };
  expect(await log(server, { method: 'OPTIONS', headers: preflight })).toMatchObject({ status: 404 });
  expect(await log(server)).toEqual({ status: 200, json: { level: 'info', sample: 1 } });
  // Nor is it there on the port for clients.
  const headers = { authorization: `Bearer ${key}` };
  expect((await send(server.origin, { path: '/log', headers })).status).toBe(404);
  expect((await server.stop()).stdout).not.toContain('log settings changed');
});
