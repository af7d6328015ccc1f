import { databaseForEach } from '../../support/fixtures.ts';
import { graphqlText } from '../../support/graphql.ts';
import { type HttpRequest, send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import type { Env, ServerProcess } from '../../support/process.ts';
import { linesOf, requestsFor } from '../../support/process-log.ts';
import { exchange, requestText } from '../../support/raw.ts';

const database = databaseForEach();
const start = (env: Env = {}) => startMeasured({ ...database.env, ...env });
const headers = { 'content-type': 'application/json' };

async function log(
  { operations }: MeasuredServer,
  request: Partial<HttpRequest> = {},
) {
  const { status, text } = await send(operations, { path: '/log', ...request });
  return { status, json: JSON.parse(text) };
}
const put = (server: MeasuredServer, settings: unknown) =>
  log(server, { method: 'PUT', headers, body: JSON.stringify(settings) });

/**
 * Sends this many requests without a key, fifty on each connection: one with
 * more unanswered requests is closed.
 */
async function request(
  server: ServerProcess,
  path: string,
  times: number,
): Promise<void> {
  const one = `GET ${path} HTTP/1.1\r\nHost: store.example\r\n\r\n`;
  const last = requestText(`GET ${path}`);
  for (let left = times; left > 0; left -= 50) {
    const count = Math.min(left, 50);
    expect(await exchange(server, one.repeat(count - 1) + last)).toHaveLength(
      count,
    );
  }
}

test('the level can be changed while the service runs, and a restart resets it to the configuration', async () => {
  const server = await start({ LOG_LEVEL: 'silent' });
  const [silent, debug, warn] = ['silent', 'debug', 'warn'].map((level) => ({
    level,
    sample: 1,
  }));
  expect(await log(server)).toEqual({ status: 200, json: silent });
  await send(server.origin, { path: '/v1/quiet' });
  expect(server.output.stdout).toBe('');
  expect(await put(server, { level: 'debug' })).toEqual({
    status: 200,
    json: debug,
  });
  await send(server.origin, { path: '/v1/logged' });
  expect(await put(server, { level: 'warn' })).toEqual({
    status: 200,
    json: warn,
  });
  await send(server.origin, { path: '/v1/quiet' });
  const { stdout } = await server.stop();
  expect(requestsFor(stdout, '/v1/quiet')).toEqual([]);
  expect(requestsFor(stdout, '/v1/logged')).toHaveLength(1);
  expect(linesOf(stdout, 'refused')).toMatchObject([{ level: 20 }]);
  expect(linesOf(stdout, 'log settings changed')).toMatchObject([
    { level: 30, before: silent, after: debug, address: '127.0.0.1' },
    { level: 30, before: debug, after: warn, address: '127.0.0.1' },
  ]);
  expect(await log(await start({ LOG_LEVEL: 'warn' }))).toEqual({
    status: 200,
    json: warn,
  });
});

test('a sample omits only requests without a failure, and each line that represents others has the rate', async () => {
  const server = await start({ LOG_SAMPLE: '0' });
  await request(server, '/livez', 50);
  await request(server, '/v1/refused', 5);
  expect((await graphqlText(server, { query: '{ nothing }' })).status).toBe(
    200,
  );
  expect(await put(server, { sample: 0.5 })).toEqual({
    status: 200,
    json: { level: 'info', sample: 0.5 },
  });
  await request(server, '/v1/openapi.json', 400);
  await put(server, { sample: 1 });
  await request(server, '/schema.graphql', 20);
  const { stdout } = await server.stop();
  const linesFor = (path: string) =>
    requestsFor(stdout, path).map(({ status, sample }) => ({ status, sample }));
  expect(linesFor('/livez')).toEqual([]);
  expect(linesFor('/v1/refused')).toEqual(
    Array(5).fill({ status: 401, sample: undefined }),
  );
  expect(requestsFor(stdout, '/graphql')).toMatchObject([
    { status: 200, code: 'GRAPHQL_VALIDATION_FAILED' },
  ]);
  // Of 400 fair throws, fewer than 100 or more than 300 heads occur once in
  // 10^23 runs.
  const { length } = linesFor('/v1/openapi.json');
  expect(length).toBeGreaterThan(100);
  expect(length).toBeLessThan(300);
  expect(linesFor('/v1/openapi.json')).toEqual(
    Array(length).fill({ status: 200, sample: 0.5 }),
  );
  expect(linesFor('/schema.graphql')).toEqual(
    Array(20).fill({ status: 200, sample: undefined }),
  );
});

test('an invalid setting is refused with an Error body that has the reason; requests that a web page can cause are refused', async () => {
  const server = await start();
  for (const [settings, reason] of [
    [{ level: 'loud' }, '/level must be equal to one of the allowed values.'],
    [{ sample: 2 }, '/sample must be <= 1.'],
    [{ sample: '0.5' }, '/sample must be number.'],
    [{ levle: 'info' }, ' must NOT have additional properties.'],
    [{}, ' must NOT have fewer than 1 properties.'],
    [[], ' must be object.'],
  ]) {
    const refusal = {
      code: 'BAD_USER_INPUT',
      message: `The body${reason}`,
      status: 400,
    };
    expect(await put(server, settings)).toEqual({ status: 400, json: refusal });
  }
  const body = JSON.stringify({ level: 'silent' });
  const preflight = {
    origin: 'https://shop.example',
    'access-control-request-method': 'PUT',
  };
  for (const [method, headersOfPage, status, code] of [
    ['PUT', { 'content-type': 'text/plain' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['PUT', {}, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['PUT', { ...headers, host: 'shop.example' }, 403, 'FORBIDDEN'],
    ['POST', headers, 404, 'NOT_FOUND'],
    ['OPTIONS', preflight, 404, 'NOT_FOUND'],
  ] as Array<[string, Record<string, string>, number, string]>) {
    const request = {
      method,
      headers: headersOfPage,
      ...(method !== 'OPTIONS' && { body }),
    };
    expect(await log(server, request)).toMatchObject({
      status,
      json: { code, status },
    });
  }
  expect(await log(server)).toEqual({
    status: 200,
    json: { level: 'info', sample: 1 },
  });
  // The port for clients has no such route.
  const authorization = `Bearer ${server.key}`;
  expect(
    (await send(server.origin, { path: '/log', headers: { authorization } }))
      .status,
  ).toBe(404);
  expect((await server.stop()).stdout).not.toContain('log settings changed');
});
