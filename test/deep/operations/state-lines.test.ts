import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { text } from 'node:stream/consumers';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import { bootstrapKey as key, startServer } from '../../support/process.ts';
import { linesOf, untilLogged } from '../../support/process-log.ts';
import { requestText } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';

const database = databaseForEach();
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

test('the start line has version, address and configuration without secrets; each new address that uses the bootstrap key has a line; the end lines have the reason and the result', async () => {
  const server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: key,
    DRAIN_TIMEOUT_MS: '9000',
    TRUST_PROXY: '127.0.0.1',
  });
  const [warning] = await untilLogged(
    server,
    'a bootstrap key is set: it has all rights and never expires',
  );
  expect(warning?.level).toBe(40);
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
    expect(
      (
        await rest(server, '/v1/pets', {
          headers: { 'x-forwarded-for': address },
        })
      ).status,
    ).toBe(200);
  }
  const { stdout, stderr } = await server.stop('SIGINT');
  const started = linesOf(stdout, 'started');
  expect(started.map(({ pages, ...line }) => line)).toEqual([
    {
      level: 30,
      time: expect.any(Number),
      pid: server.child.pid,
      host: hostname(),
      version,
      nodejs: process.version,
      address: server.origin,
      config: expect.objectContaining({
        BOOTSTRAP_API_KEY: 'set',
        DRAIN_TIMEOUT_MS: 9000,
        LOG_SAMPLE: 1,
        SUBSCRIPTIONS_PER_KEY: 100,
      }),
      msg: 'started',
    },
  ]);
  expect(linesOf(stdout, 'the bootstrap key is used')).toMatchObject([
    { level: 40, key: 0, address: '192.0.2.1' },
    { level: 40, key: 0, address: '192.0.2.2' },
  ]);
  expect(linesOf(stdout, 'draining')).toMatchObject([
    { level: 30, reason: 'SIGINT' },
  ]);
  expect(linesOf(stdout).at(-1)).toMatchObject({
    msg: 'closed',
    ms: expect.any(Number),
    isClean: true,
    requests: 0,
  });
  expect(stdout + stderr).not.toContain(key);
});

test('a body that is late at the shutdown gets 408, and the process ends with 0', async () => {
  const server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: key,
    DRAIN_TIMEOUT_MS: '300',
  });
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
  const head = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`;
  socket.write(requestText('POST /v1/pets', `${head}Expect: 100-continue\r\n`));
  // The server has accepted the request.
  await once(socket, 'data');
  const [{ code, stdout }, answer] = await Promise.all([
    server.stop(),
    text(socket),
  ]);
  expect([code, linesOf(stdout, 'closed')]).toMatchObject([0, [{}]]);
  expect(answer).toMatch(/^HTTP\/1\.1 408 .*"code":"REQUEST_TIMEOUT"/s);
});
