import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config.ts';
import { createOwnDatabase, newFolder } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, runFile, startAndFail, startServer } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { allUp, linesOf, startWorkers } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createOwnDatabase);
let folder: string;
let manifest: string;
beforeEach(async () => {
  folder = await newFolder();
  manifest = join(folder, 'manifest.json');
  writeFileSync(manifest, '{}');
});
afterEach(() => rmSync(folder, { recursive: true }));

const drained = { code: 0, signal: null, stderr: '' };

test('WORKERS is a whole number from 1 to 256, or auto', () => {
  for (const good of ['1', '256', 'auto']) expect(`${loadConfig({ WORKERS: good }).workers}`).toBe(good);
  for (const bad of ['0', '257', '1.5', 'all']) expect(() => loadConfig({ WORKERS: bad })).toThrow('WORKERS');
});

test('connections go to the workers in turn, and each line of the log says whose it is', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
  for (let time = 1; time <= 6; time += 1) await exchange(server, requestText('GET /livez'));
  const { stdout, ...ended } = await server.stop();
  expect(ended).toEqual(drained);
  const answered = linesOf(stdout).filter(({ req }) => (req as { path?: string })?.path === '/livez');
  expect(answered.map(({ worker }) => worker).sort()).toEqual([1, 1, 2, 2, 3, 3]);
});

test('one process is the service by default, and its log names no worker', async () => {
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
  const { stdout } = await server.stop();
  expect(linesOf(stdout).filter(({ worker }) => worker !== undefined)).toEqual([]);
});

(onPostgres ? test.skip : test)('a first start prints one key (embedded store only)', async () => {
  const server = await startWorkers(database.env);
  await eventually(async () => server.output.stdout.includes('Explore:'));
  const keys = new Set(server.output.stdout.match(/ask_\w+/g));
  expect(keys.size).toBe(1);
  const headers = { authorization: `Bearer ${[...keys][0]}` };
  expect((await send(server.origin, { path: '/v1/pets', headers })).status).toBe(200);
  expect(await server.stop()).toMatchObject(drained);
});

test('a worker that dies is followed by another, and the log says so', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key }, 2);
  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGKILL');
  await eventually(async () => server.pids().length === 3);
  await allUp(server);
  const lines = linesOf((await server.stop()).stdout);
  expect(lines.filter(({ msg }) => msg === 'worker died')).toEqual([
    {
      level: 50,
      time: expect.any(Number),
      worker: expect.any(Number),
      pid: server.child.pid,
      host: hostname(),
      workerPid: victim,
      exitCode: null,
      signal: 'SIGKILL',
      restartInMs: 100,
      msg: 'worker died',
    },
  ]);
});

test('the service is not ready before all workers are: connections that are kept alive would stay with the first', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: key, WORKERS: '3' };
  const { origin } = await startServer(env, { until: '/livez' });
  const ready = () => send(origin, { path: '/readyz' });
  let answer = await ready();
  while (answer.status !== 200) {
    expect(answer.status).toBe(503);
    answer = await ready();
  }
  expect(answer.text).toBe('{"status":"ok"}');
});

describe('while a worker cannot be restarted', () => {
  test('the others serve, /readyz says how many are up, and in the end the service gives up', async () => {
    const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, TRUSTED_DOCUMENTS: manifest }, 2);
    rmSync(manifest);
    process.kill(server.pids()[0] as number, 'SIGKILL');
    await eventually(async () => {
      return (await send(server.origin, { path: '/readyz' })).text === '{"status":"ok","workers":"1 of 2"}';
    });
    const { code, stderr, stdout } = await server.ended;
    expect(code).toBe(1);
    const told = stderr.trim().split('\n');
    expect(told.pop()).toMatch(
      /^animal-store: Worker \d ended before it could serve, 6 times in a row, .*exit code 1\.$/,
    );
    expect(told).toHaveLength(6);
    const lines = linesOf(stdout);
    const pauses = lines.filter(({ msg }) => msg === 'worker died').map(({ restartInMs }) => restartInMs);
    expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200]);
    expect(lines.filter(({ msg, exitCode }) => msg === 'worker ended' && exitCode === 0)).toHaveLength(1);
  });
});

describe('a first start that fails is told in one line', () => {
  test('by the worker that found the port taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const ended = await startAndFail({ ...database.env, PORT: `${port}`, WORKERS: '3' });
    other.close();
    expect(ended).toMatchObject({
      code: 1,
      stderr: `animal-store: Port ${port} on 127.0.0.1 is taken (PORT, HOST).\n`,
    });
  });

  test('by the worker that could not read a file', async () => {
    rmSync(manifest);
    const { code, stderr } = await startAndFail({ ...database.env, TRUSTED_DOCUMENTS: manifest, WORKERS: '3' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^animal-store: .*manifest\.json.*\n$/);
  });

  test('by the parent that could not read the configuration', async () => {
    const { code, stderr } = await startAndFail({ ...database.env, WORKERS: '3', LOG_LEVEL: 'loud' });
    expect(code).toBe(1);
    expect(stderr.match(/LOG_LEVEL/g)).toHaveLength(1);
  });
});

test('inside of another cluster it says what to do', async () => {
  const program = join(folder, 'parent.mjs');
  writeFileSync(
    program,
    `import cluster from 'node:cluster';
     cluster.setupPrimary({ exec: process.argv[2] });
     cluster.fork().on('exit', (code) => process.exit(code));`,
  );
  const env = { ...database.env, WORKERS: '2' };
  const { code, stderr } = await runFile(program, [join(process.cwd(), 'dist/src/main.js')], env).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^animal-store: WORKERS is more than 1 .*set WORKERS=1.*\n$/);
});
