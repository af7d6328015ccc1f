import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually, freePort, type ServerProcess, startServer } from '../../support/process.ts';
import { requestText } from '../../support/raw.ts';
import { hasRedis } from '../../support/redis.ts';
import { type LogLine, linesOf } from '../../support/workers.ts';

const database = databaseForEach();
const key = 'a-key-for-these-tests-and-no-others';
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

const find = (text: string, msg: string) => linesOf(text).find((line) => line.msg === msg);

async function told(server: ServerProcess, msg: string): Promise<LogLine> {
  await eventually(async () => find(server.output.stdout, msg) !== undefined);
  return find(server.output.stdout, msg) as LogLine;
}

test('the start says which version runs where, with which configuration but its secrets, and the end why and how it ended', async () => {
  const redisUrl = `redis://hunter2:hunter2@127.0.0.1:${await freePort()}/0?password=swordfish`;
  const env = { BOOTSTRAP_API_KEY: key, QUOTA_PER_MINUTE: '5', REDIS_URL: redisUrl, DRAIN_TIMEOUT_MS: '9000' };
  const server = await startServer({ ...database.env, ...env });
  const started = await told(server, 'started');
  const { stdout, stderr } = await server.stop('SIGINT');
  expect(started).toEqual({
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
      REDIS_URL: redisUrl.replace(/hunter2:hunter2@|\?.*/g, ''),
      SUBSCRIPTIONS_PER_KEY: 100,
      WORKERS: 1,
    }),
    msg: 'started',
  });
  expect(find(stdout, 'draining')).toMatchObject({ level: 30, reason: 'SIGINT' });
  expect(linesOf(stdout).at(-1)).toMatchObject({ msg: 'closed', ms: expect.any(Number), isClean: true, requests: 0 });
  for (const secret of ['hunter2', 'swordfish', key]) expect(stdout + stderr).not.toContain(secret);
});

test('that a bootstrap key is set is told at the start, and each address that begins to use it', async () => {
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, TRUST_PROXY: '127.0.0.1' });
  const warning = await told(server, 'a bootstrap key is set: it has all rights and never expires');
  expect(warning.level).toBe(40);
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
    const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': address };
    expect((await send(server.origin, { path: '/v1/pets', headers })).status).toBe(200);
  }
  const { stdout } = await server.stop();
  const used = linesOf(stdout).filter(({ msg }) => msg === 'the bootstrap key is used');
  expect(used.map(({ level, key: id, address }) => ({ level, id, address }))).toEqual([
    { level: 40, id: 0, address: '192.0.2.1' },
    { level: 40, id: 0, address: '192.0.2.2' },
  ]);
  expect(stdout).not.toContain(key);
});

test('a request that outlives the drain is counted in the last line', async () => {
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key, DRAIN_TIMEOUT_MS: '300' });
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1').on('error', () => undefined);
  const head = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`;
  socket.write(requestText('POST /v1/pets', `${head}Expect: 100-continue\r\n`));
  // The request has been taken.
  await once(socket, 'data');
  const { code, stdout } = await server.stop();
  expect(code).toBe(1);
  expect(linesOf(stdout).at(-1)).toMatchObject({ level: 50, requests: 1, msg: 'closed before all was finished' });
});

(hasRedis ? test : test.skip)(
  'a password that Redis refuses is not in the log, the reason is (skipped without redis-server)',
  async () => {
    const port = await freePort();
    const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--requirepass', 'another'];
    const redis = spawn('redis-server', options, { stdio: 'ignore' });
    const REDIS_URL = `redis://user:hunter2-in-clear@127.0.0.1:${port}`;
    const { output, stop } = await startServer({ ...database.env, QUOTA_PER_MINUTE: '100', REDIS_URL });
    await eventually(async () => /WRONGPASS/.test(output.stdout)).finally(() => redis.kill('SIGKILL'));
    const { stdout, stderr } = await stop();
    expect(stdout).toContain('Redis cannot be used');
    expect(stdout + stderr).not.toContain('hunter2');
  },
);
