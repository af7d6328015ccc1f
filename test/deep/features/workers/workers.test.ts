import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
import { send } from '../../../support/http.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import {
  allUp,
  bootstrapKey,
  eventually,
  runFile,
  startServer,
} from '../../../support/process.ts';
import {
  linesOf,
  requestsFor,
  untilLogged,
} from '../../../support/process-log.ts';
import { exchange, requestText } from '../../../support/raw.ts';
import { startWorkers, type WorkersProcess } from './start.ts';

const database = databaseForEach();
const drained = { code: 0, signal: null, stderr: '' };

test('the service is ready when all its workers are up; they get connections in turn; a dead worker is replaced, and the others get its connections', async () => {
  const server = await startServer(
    { ...database.env, WORKERS: '3', BOOTSTRAP_API_KEY: bootstrapKey },
    { until: '/livez' },
  );
  const ready = () => send(server.origin, { path: '/readyz' });
  let response = await ready();
  for (; response.status !== 200; response = await ready())
    expect(response.status).toBe(503);
  expect(response.text).toBe('{"status":"ok"}');
  // A connection that is kept alive would stay with the first worker.
  for (let time = 1; time <= 6; time += 1)
    await exchange(server, requestText('GET /v1/nothing'));
  const answered = () =>
    requestsFor(server.output.stdout, '/v1/nothing').map(
      ({ worker }) => worker,
    );
  await eventually(async () => answered().length === 6);
  expect(answered().sort()).toEqual([1, 1, 2, 2, 3, 3]);

  const victim = (await untilLogged(server, 'worker ready', 3))[0]
    ?.workerPid as number;
  process.kill(victim, 'SIGSTOP');
  // Each third connection goes to the stopped worker, which does not accept it.
  const responses = Array.from({ length: 6 }, () =>
    exchange(server, requestText('GET /livez')),
  );
  await Promise.race(responses);
  process.kill(victim, 'SIGKILL');
  expect((await Promise.all(responses)).flat()).toMatchObject(
    Array(6).fill({ status: 200 }),
  );
  await untilLogged(server, 'worker ready', 4);
  await allUp(server);

  const { stdout, ...ended } = await server.stop();
  expect(ended).toEqual(drained);
  expect(linesOf(stdout, 'worker died')).toEqual([
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

test('inside another cluster the error names the remedy', async () => {
  const program = join(await newFolder(), 'parent.mjs');
  writeFileSync(
    program,
    `import cluster from 'node:cluster';
     cluster.setupPrimary({ exec: process.argv[2] });
     cluster.fork().on('exit', (code) => process.exit(code));`,
  );
  const env = { ...database.env, WORKERS: '2' };
  const { code, stderr } = await runFile(
    program,
    [join(process.cwd(), 'dist/src/main.js')],
    env,
  ).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^animal-store: WORKERS is more than 1 .*set WORKERS=1.*\n$/,
  );
});

/**
 * The limits of the whole service. A request on a new connection goes to the
 * next worker.
 */
describe('the limits', () => {
  async function statusWith(
    server: WorkersProcess,
    secret: string,
    address: string,
  ): Promise<number> {
    const headers = `Authorization: Bearer ${secret}\r\nX-Forwarded-For: ${address}\r\n`;
    const [response] = await exchange(
      server,
      requestText('GET /v1/pets', headers),
    );
    return response?.status ?? 0;
  }
  let guesses = 0;
  const guess = () => `one-more-guess-at-the-bootstrap-key-${++guesses}`;
  const only = (status: number) => new Set([status]);

  test('of wrong keys from an address hold over all workers, even after one has died', async () => {
    const limits = {
      TRUST_PROXY: '127.0.0.1',
      AUTH_FAILURES_PER_MINUTE: '9',
    };
    const server = await startWorkers({ ...database.env, ...limits });
    /** Requests one after the other. @returns their statuses */
    async function statuses(
      address: string,
      count: number,
      secret?: string,
    ): Promise<Set<number>> {
      const all = new Set<number>();
      for (let time = 1; time <= count; time += 1)
        all.add(await statusWith(server, secret ?? guess(), address));
      return all;
    }
    // One wrong key counts once, although all workers get it.
    expect(await statuses('192.0.2.1', 6, guess())).toEqual(only(401));
    expect(await statuses('192.0.2.1', 8)).toEqual(only(401));
    expect(await statuses('192.0.2.1', 3)).toEqual(only(429));

    // Concurrent requests.
    const found = await Promise.all(
      Array.from({ length: 60 }, () =>
        statusWith(server, guess(), '192.0.2.2'),
      ),
    );
    const wrong = found.filter((status) => status === 401).length;
    expect(found.filter((status) => status === 429)).toHaveLength(60 - wrong);
    expect(wrong).toBeGreaterThanOrEqual(9);
    expect(await statuses('192.0.2.2', 6)).toEqual(only(429));

    expect(await statuses('192.0.2.3', 6)).toEqual(only(401));
    process.kill(server.pids()[0] as number, 'SIGKILL');
    await untilLogged(server, 'worker ready', 4);
    expect(await statuses('192.0.2.3', 3)).toEqual(only(401));
    expect(await statuses('192.0.2.3', 6)).toEqual(only(429));
  });

  test('are counted by each worker alone while the parent does not respond, and no request waits for the parent', async () => {
    const server = await startWorkers({ ...database.env }, 2);
    // Opened before the parent stops, because the parent hands connections to
    // the workers.
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
    const status = async (secret: string) => {
      socket.write(
        `GET /v1/pets HTTP/1.1\r\nHost: store.example\r\nAuthorization: Bearer ${secret}\r\n\r\n`,
      );
      return Number(`${await once(socket, 'data')}`.slice(9, 12));
    };
    expect(await status(bootstrapKey)).toBe(200);
    server.child.kill('SIGSTOP');
    expect([
      await status(bootstrapKey),
      await status(guess()),
      await status(bootstrapKey),
    ]).toEqual([200, 401, 200]);
    server.child.kill('SIGCONT');
    expect([await status(bootstrapKey), await status(guess())]).toEqual([
      200, 401,
    ]);
    expect(await server.stop()).toMatchObject(drained);
  });
});

test('the operations port does not count a worker that hangs, until it goes on', async () => {
  const server = await startWorkers({ ...database.env }, 2);
  const ready = async () =>
    (await send(server.operations, { path: '/readyz' })).text;
  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGSTOP');
  await eventually(
    async () => (await ready()) === '{"status":"ok","workers":"1 of 2"}',
  );
  process.kill(victim, 'SIGCONT');
  await eventually(async () => (await ready()) === '{"status":"ok"}');
});

test('the operations port is ready while clients occupy every connection of the service', async () => {
  // Behind a proxy all connections are from one network, which may have all.
  const proxied = { MAX_CONNECTIONS: '8', TRUST_PROXY: '127.0.0.1' };
  const server = await startWorkers({ ...database.env, ...proxied }, 2);
  const port = Number(new URL(server.origin).port);
  const idle: Socket[] = [];
  // The parent gives a busy worker fewer connections.
  await eventually(async () => {
    for (let at = 0; at < 8; at += 1)
      idle.push(connect(port, '127.0.0.1').on('error', () => undefined));
    return (await server.metrics()).get('animal_store_connections') === 16;
  });
  const { status, text } = await send(server.operations, { path: '/readyz' });
  expect([status, text]).toEqual([200, '{"status":"ok"}']);
  for (const socket of idle) socket.destroy();
});
