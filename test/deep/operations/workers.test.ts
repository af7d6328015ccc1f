import { rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config.ts';
import { newFolder } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, runFile, startServer } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { allUp, linesOf, startWorkers, type WorkersProcess } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
let folder: string;
let manifest: string;
beforeEach(async () => {
  folder = await newFolder();
  manifest = join(folder, 'manifest.json');
  writeFileSync(manifest, '{}');
});
afterEach(() => rmSync(folder, { recursive: true }));

const env = () => ({ ...database.env, BOOTSTRAP_API_KEY: key });
const drained = { code: 0, signal: null, stderr: '' };

test('WORKERS is a whole number from 1 to 256, or auto', () => {
  for (const good of ['1', '256', 'auto']) expect(`${loadConfig({ WORKERS: good }).workers}`).toBe(good);
  for (const bad of ['0', '257', '1.5', 'all']) expect(() => loadConfig({ WORKERS: bad })).toThrow('WORKERS');
});

test('the service is ready with all its workers; connections go to them in turn; a dead one is replaced; the log says so', async () => {
  const server = await startServer({ ...env(), WORKERS: '3' }, { until: '/livez' });
  const ready = () => send(server.origin, { path: '/readyz' });
  let answer = await ready();
  // Connections that are kept alive would stay with the first worker.
  while (answer.status !== 200) {
    expect(answer.status).toBe(503);
    answer = await ready();
  }
  expect(answer.text).toBe('{"status":"ok"}');
  for (let time = 1; time <= 6; time += 1) await exchange(server, requestText('GET /v1/nothing'));
  const answered = () =>
    linesOf(server.output.stdout).filter(({ req }) => (req as { path?: string })?.path === '/v1/nothing');
  await eventually(async () => answered().length === 6);
  const readyLines = () => linesOf(server.output.stdout).filter(({ msg }) => msg === 'worker ready');
  await eventually(async () => readyLines().length === 3);
  const victim = readyLines()[0]?.workerPid as number;
  process.kill(victim, 'SIGKILL');
  await eventually(async () => readyLines().length === 4);
  await allUp(server);

  const { stdout, ...ended } = await server.stop();
  expect(ended).toEqual(drained);
  const lines = linesOf(stdout);
  expect(
    answered()
      .map(({ worker }) => worker)
      .sort(),
  ).toEqual([1, 1, 2, 2, 3, 3]);
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

test('while a worker cannot be restarted the others serve, /readyz says how many are up, and in the end the service gives up', async () => {
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

/** Limits of the whole service. A request on a connection of its own goes to the next worker. */
describe('what is limited', () => {
  const env = () => ({ ...database.env, BOOTSTRAP_API_KEY: key, TRUST_PROXY: '127.0.0.1' });
  async function statusWith(server: WorkersProcess, secret: string, address: string): Promise<number> {
    const headers = `Authorization: Bearer ${secret}\r\nX-Forwarded-For: ${address}\r\n`;
    const [answer] = await exchange(server, requestText('GET /v1/pets', headers));
    return answer?.status ?? 0;
  }
  let guesses = 0;
  const guess = () => `one-more-guess-at-the-bootstrap-key-${++guesses}`;
  const only = (status: number) => new Set([status]);

  test('is wrong keys from an address, and units of a quota without Redis, over all workers, dead ones included', async () => {
    const server = await startWorkers({ ...env(), AUTH_FAILURES_PER_MINUTE: '9', QUOTA_PER_MINUTE: '9' });
    /** Requests one after the other. @returns their statuses */
    async function statuses(address: string, count: number, secret?: string): Promise<Set<number>> {
      const found = new Set<number>();
      for (let time = 1; time <= count; time += 1) found.add(await statusWith(server, secret ?? guess(), address));
      return found;
    }
    // One wrong key that comes to all workers counts once.
    expect(await statuses('192.0.2.1', 6, guess())).toEqual(only(401));
    expect(await statuses('192.0.2.1', 8)).toEqual(only(401));
    expect(await statuses('192.0.2.1', 3)).toEqual(only(429));

    // Many at once.
    const found = await Promise.all(Array.from({ length: 60 }, () => statusWith(server, guess(), '192.0.2.2')));
    const wrong = found.filter((status) => status === 401).length;
    expect(found.filter((status) => status === 429)).toHaveLength(60 - wrong);
    expect(wrong).toBeGreaterThanOrEqual(9);
    expect(await statuses('192.0.2.2', 6)).toEqual(only(429));

    expect(await statuses('192.0.2.3', 6)).toEqual(only(401));
    process.kill(server.pids()[0] as number, 'SIGKILL');
    await eventually(async () => server.pids().length === 4);
    expect(await statuses('192.0.2.3', 3)).toEqual(only(401));
    expect(await statuses('192.0.2.3', 6)).toEqual(only(429));

    expect(await statuses('192.0.2.4', 9, key)).toEqual(only(200));
    expect(await statuses('192.0.2.4', 6, key)).toEqual(only(429));
  });

  test('is counted by each worker for itself while the parent does not answer, and no request waits for it', async () => {
    const server = await startWorkers({ ...env(), QUOTA_PER_MINUTE: '1000' }, 2);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const status = (secret: string) =>
      new Promise<number | undefined>((done, fail) => {
        const headers = { authorization: `Bearer ${secret}` };
        const outgoing = request(`${server.origin}/v1/pets`, { agent, headers }, (incoming) => {
          incoming.resume().on('end', () => done(incoming.statusCode));
        });
        outgoing.on('error', fail).end();
      });
    expect(await status(key)).toBe(200);
    server.child.kill('SIGSTOP');
    expect([await status(key), await status(guess()), await status(key)]).toEqual([200, 401, 200]);
    server.child.kill('SIGCONT');
    expect([await status(key), await status(guess())]).toEqual([200, 401]);
    agent.destroy();
    expect(await server.stop()).toMatchObject(drained);
  });
});

interface Made {
  name: string;
  status: number;
  /** Of the connection. */
  id: number;
}

interface Failed {
  name: string;
  id: number;
}

const ids = new WeakMap<object, number>();
let lastId = 0;

/** The connection's number, the same for all of its requests. */
function idOf(socket: object): number {
  const id = ids.get(socket) ?? ++lastId;
  ids.set(socket, id);
  return id;
}

/** One creation on one of the agent's connections. */
function create(server: WorkersProcess, agent: Agent, name: string): Promise<Made> {
  return new Promise((done, fail) => {
    let id = 0;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const outgoing = request(`${server.origin}/v1/pets`, { agent, method: 'POST', headers }, (incoming) => {
      incoming.on('error', () => fail({ name, id } satisfies Failed)).resume();
      incoming.on('end', () => done({ name, id, status: incoming.statusCode ?? 0 }));
    });
    outgoing.on('socket', (socket) => {
      id = idOf(socket);
    });
    outgoing.on('error', () => fail({ name, id } satisfies Failed));
    outgoing.end(JSON.stringify({ name, categoryId: 5 }));
  });
}

async function namesIn(server: WorkersProcess): Promise<string[]> {
  const names: string[] = [];
  for (let after = ''; ; ) {
    const { json } = await rest({ ...server, key }, `/v1/pets?limit=100${after}`);
    names.push(...json.map(({ name }: { name: string }) => name));
    if (json.length < 100) return names;
    after = `&after=${json.at(-1).id}`;
  }
}

test('a worker that is killed under load costs only the requests that it had in hand', async () => {
  const server = await startWorkers(env(), 2);
  const agent = new Agent({ keepAlive: true, maxSockets: 12 });
  const made: Made[] = [];
  const failed: Failed[] = [];
  let isOver = false;
  let number = 0;
  const client = async () => {
    while (!isOver) {
      await create(server, agent, `pet ${++number}`).then(
        (one) => made.push(one),
        (one) => failed.push(one),
      );
    }
  };
  const clients = Array.from({ length: 12 }, client);
  for (const victim of server.pids()) {
    const before = made.length;
    await eventually(async () => made.length > before + 100);
    process.kill(victim, 'SIGKILL');
    await eventually(async () =>
      linesOf(server.output.stdout).some(({ msg, workerPid }) => msg === 'worker died' && workerPid === victim),
    );
    await allUp(server);
  }
  isOver = true;
  await Promise.all(clients);
  agent.destroy();

  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]));
  const kept = await namesIn(server);
  expect(new Set(kept).size).toBe(kept.length);
  const lost = made.filter(({ name }) => !kept.includes(name));
  expect(lost).toEqual([]);
  // Of a creation that was not acknowledged nobody knows: it is there, or it is not.
  const unknown = kept.filter((name) => !made.some((one) => one.name === name));
  expect(failed.map(({ name }) => name)).toEqual(expect.arrayContaining(unknown));
  // A connection fails once, and nothing comes from it after that: it was the dead worker's.
  const connections = failed.map(({ id }) => id);
  expect(new Set(connections).size).toBe(connections.length);
  expect(failed.length).toBeLessThanOrEqual(12 * 3);
  expect(await server.stop()).toMatchObject(drained);
});

test('a connection that a dead worker had not taken yet goes to another one', async () => {
  const server = await startWorkers(env(), 2);
  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGSTOP');
  // Round robin: each second connection is the stopped worker's.
  const answers = Array.from({ length: 4 }, () => {
    return new Promise<string>((done, fail) => {
      const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      socket.on('error', fail).on('close', () => done(text));
      socket.write('GET /livez HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n\r\n');
    });
  });
  await Promise.race(answers);
  process.kill(victim, 'SIGKILL');
  for (const answer of await Promise.all(answers)) expect(answer).toContain('HTTP/1.1 200');
  await allUp(server);
  expect(await server.stop()).toMatchObject(drained);
});
