import { once } from 'node:events';
import { connect } from 'node:net';
import { createOwnDatabase, type TestDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { follow, type Stream, seen } from '../../support/events.ts';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import { bootstrapKey, eventually, handledBy, type ServerProcess, startServer } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { isRunning, linesOf, startWorkers } from '../../support/workers.ts';

// A connection or stream that outlived the signal would hold the drain up for longer than a test may take.
const environment = ({ env }: Pick<TestDatabase, 'env'>) => ({
  ...env,
  BOOTSTRAP_API_KEY: bootstrapKey,
  DRAIN_TIMEOUT_MS: '600000',
  KEEP_ALIVE_TIMEOUT_MS: '600000',
});
const drained = { code: 0, signal: null, stderr: '' };
const create = (server: ServerProcess, name: string) =>
  rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
const followers = (server: ServerProcess, count: number): Promise<Stream[]> =>
  Promise.all(Array.from({ length: count }, () => follow(server, { after: '0' })));

const database = databaseForEach();
const env = () => environment(database);

test.each(['SIGTERM', 'SIGHUP'] as const)(
  'a server closes idle connections some time after %s, also those on which nothing was asked, and ends with 0',
  async (signal) => {
    const server = await startServer({ ...env(), DRAIN_DELAY_MS: '100' });
    const others = ['SIGINT', 'SIGQUIT', 'SIGUSR2'] satisfies NodeJS.Signals[];
    expect(handledBy(server, others)).toEqual(others);
    // Browsers open one in advance, and undici when a subscription is aborted.
    const unused = connect(Number(new URL(server.origin).port), '127.0.0.1');
    await once(unused, 'connect');
    const answer = await rest(server, '/v1/pets');
    expect([answer.status, answer.headers.connection]).toEqual([200, 'keep-alive']);
    // A second signal does not cut it short.
    server.child.kill(signal);
    const ended = await server.stop(signal);
    expect(ended).toMatchObject({ ...drained, stdout: expect.stringContaining('"draining"') });
    unused.destroy();
  },
);

describe('workers', () => {
  test('all drain after SIGTERM to the parent, which ends with 0; live lists at one have what is created at another', async () => {
    const server = await startWorkers(env(), 2);
    const streams = await followers(server, 4);
    for (const name of ['a', 'b', 'c']) await create(server, name);
    for (const stream of streams) {
      await stream.until(3);
      expect(seen(stream)).toEqual(['a', 'b', 'c']);
    }
    const { stdout, ...ended } = await server.stop();
    expect(ended).toEqual(drained);
    const by = (message: string) => linesOf(stdout, message).map(({ worker }) => worker);
    // The parent tells the start and the end, and each worker its own drain.
    expect(by('started')).toEqual([undefined]);
    expect(by('draining').sort()).toEqual([1, 2, undefined]);
    expect(by('closed').sort()).toEqual([1, 2, undefined]);
    expect(linesOf(stdout).at(-1)).toMatchObject({ msg: 'closed', pid: server.child.pid, isClean: true, workers: 0 });
    expect(server.pids().filter(isRunning)).toEqual([]);
  });

  test('do not mind SIGINT to all of them, twice, as Ctrl-C sends it', async () => {
    const server = await startWorkers(env(), 2);
    for (let time = 1; time <= 2; time += 1) {
      for (const pid of [server.child.pid as number, ...server.pids()]) process.kill(pid, 'SIGINT');
    }
    expect(await server.ended).toMatchObject(drained);
  });

  test('each say that they are not ready while the service drains, and so does the port for operators', async () => {
    const server = await startWorkers({ ...env(), DRAIN_DELAY_MS: '600000' }, 2);
    const statuses = async () => {
      const found: unknown[] = [(await send(server.operations, { path: '/readyz' })).status];
      for (let time = 1; time <= 6; time += 1) {
        const [answer] = await exchange(server, requestText('GET /readyz'));
        found.push(answer?.status);
      }
      return found;
    };
    await eventually(async () => (await statuses()).every((status) => status === 200));
    server.child.kill('SIGTERM');
    await eventually(async () => (await statuses()).every((status) => status === 503));
    for (const pid of server.pids()) process.kill(pid, 'SIGKILL');
    expect(await server.ended).toMatchObject({ code: 1, signal: null });
  });

  test('that do not end in time are killed, and the service ends with 1', async () => {
    const server = await startWorkers({ ...env(), DRAIN_TIMEOUT_MS: '100' }, 2);
    process.kill(server.pids()[0] as number, 'SIGSTOP');
    expect(await server.stop()).toMatchObject({ code: 1, signal: null, stderr: '' });
    expect(server.pids().filter(isRunning)).toEqual([]);
  });

  const own = databaseForEach(createOwnDatabase);

  test('of an embedded store whose parent is killed drain and end by themselves, and nothing is lost', async () => {
    const server = await startWorkers(environment(own), 2);
    const created = await create(server, 'Rex');
    server.child.kill('SIGKILL');
    // The workers have its standard error: this is their end, too, but for the last moment of a process.
    expect((await server.ended).stderr).toBe('');
    await eventually(async () => !server.pids().some(isRunning));
    const again = await startServer(environment(own));
    expect((await rest(again, '/v1/pets')).json).toEqual([created.json]);
  });
});

describe('live lists', () => {
  test('a thousand of them are cut off at SIGTERM, and the server ends', async () => {
    const server = await startServer({ ...env(), SUBSCRIPTIONS_PER_KEY: '1000', LOG_LEVEL: 'warn' });
    const streams = await followers(server, 1000);
    await create(server, 'Rex');
    for (const stream of streams) await stream.until(1);
    expect(await server.stop()).toMatchObject(drained);
    expect(new Set(await Promise.all(streams.map(({ ended }) => ended)))).toEqual(new Set(['cut']));
    expect(streams.every(({ text }) => !text.includes('event: complete'))).toBe(true);
  });

  test('are counted, and have a line each; none begins while a server drains, which is not ready and serves what is open and asked', async () => {
    const server = await startMeasured({ ...env(), DRAIN_DELAY_MS: '600000' });
    const [open, left] = await followers(server, 2);
    for (const name of ['a', 'b']) await create(server, name);
    for (const stream of [open, left]) await stream?.until(2);
    const metric = async (name: string) => (await server.metrics()).get(name);
    expect(await metric('animal_store_subscriptions')).toBe(2);
    left?.close();
    await eventually(async () => (await metric('animal_store_subscriptions')) === 1);
    expect(await metric('animal_store_subscription_items_total')).toBe(4);
    expect(await metric('animal_store_operations_total{face="graphql",operation="petAdded",code="OK"}')).toBe(1);
    expect(await metric('http_server_aborted_requests_total')).toBe(0);
    const lines = () => linesOf(server.output.stdout).filter(({ fields }) => `${fields}` === 'petAdded');
    await eventually(async () => lines().length > 0);
    const line = { operation: 'PetAdded', status: 200, items: 2, msg: 'answered' };
    expect(lines()).toEqual([expect.objectContaining(line)]);

    server.child.kill('SIGTERM');
    const ready = () => send(server.origin, { path: '/readyz' });
    await eventually(async () => (await ready()).status === 503);
    expect(JSON.parse((await ready()).text).message).toBe('The service is shutting down.');
    expect((await send(server.origin, { path: '/livez' })).status).toBe(200);
    expect([await metric('animal_store_draining'), await metric('animal_store_database_up')]).toEqual([1, 1]);
    const late = await follow(server);
    expect([late.status, late.headers['retry-after']]).toEqual([503, '1']);
    const created = await create(server, 'c');
    expect([created.status, created.headers.connection]).toEqual([201, 'close']);
    await open?.until(3);
    server.child.kill('SIGKILL');
  });
});
