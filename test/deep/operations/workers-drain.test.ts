import pg from 'pg';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, startServer } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { isRunning, linesOf, startWorkers } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createOwnDatabase);
const drained = { code: 0, signal: null, stderr: '' };
const rex = { method: 'POST', json: { name: 'Rex', categoryId: 5 } };

describe.each(['SIGTERM', 'SIGINT'] as const)('after %s', (signal) => {
  test('to the parent all workers drain, and the service ends with 0', async () => {
    const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
    const { stdout, ...ended } = await server.stop(signal);
    expect(ended).toEqual(drained);
    const draining = linesOf(stdout).filter(({ msg }) => msg === 'draining');
    expect(draining.map(({ worker = 0 }) => worker).sort()).toEqual([0, 1, 2, 3]);
    expect(server.pids().filter(isRunning)).toEqual([]);
  });

  test('to all of them, twice, as Ctrl-C under npm sends it, nothing is cut short', async () => {
    const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
    for (let time = 1; time <= 2; time += 1) {
      for (const pid of [server.child.pid as number, ...server.pids()]) process.kill(pid, signal);
    }
    expect(await server.ended).toMatchObject(drained);
  });
});

test('while the service drains each of its workers says that it is not ready', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: key, DRAIN_DELAY_MS: '600000' };
  const server = await startWorkers(env);
  server.child.kill('SIGTERM');
  const statuses = async () => {
    const found = [];
    for (let time = 1; time <= 6; time += 1) {
      const [answer] = await exchange(server, requestText('GET /readyz'));
      found.push(answer?.status);
    }
    return found;
  };
  await eventually(async () => (await statuses()).every((status) => status === 503));
  for (const pid of server.pids()) process.kill(pid, 'SIGKILL');
  expect(await server.ended).toMatchObject({ code: 1, signal: null });
});

test('a worker that does not end in time is killed, and the service ends with 1', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, DRAIN_TIMEOUT_MS: '100' }, 2);
  process.kill(server.pids()[0] as number, 'SIGSTOP');
  expect(await server.stop()).toMatchObject({ code: 1, signal: null, stderr: '' });
  expect(server.pids().filter(isRunning)).toEqual([]);
});

test('workers whose parent is killed drain and end by themselves, and nothing is lost', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
  const created = await rest({ ...server, key }, '/v1/pets', rex);
  server.child.kill('SIGKILL');
  // The workers have its standard error: this is their end, too, but for the last moment of a process.
  expect((await server.ended).stderr).toBe('');
  await eventually(async () => !server.pids().some(isRunning));
  const again = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
  expect((await rest({ ...again, key }, '/v1/pets')).json).toEqual([created.json]);
});

(onPostgres ? test.skip : test)(
  'the end of the embedded engine, which is the parent’s, ends the service (embedded store only)',
  async () => {
    const { DATA_DIR } = database.env as { DATA_DIR: string };
    const server = await startWorkers({ DATA_DIR, BOOTSTRAP_API_KEY: key }, 2);
    const created = await rest({ ...server, key }, '/v1/pets', rex);
    const guest = new pg.Client({ host: DATA_DIR, user: 'postgres', database: 'postgres' });
    guest.on('error', () => undefined);
    await guest.connect();
    await guest.query("create function trap(int) returns int language internal strict as 'textlen'");
    await expect(guest.query('select trap(2147483000)')).rejects.toThrow('Connection terminated unexpectedly');
    const { code, stderr } = await server.ended;
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'animal-store: The embedded store has stopped working.\n' });
    await eventually(async () => !server.pids().some(isRunning));
    const again = await startServer({ DATA_DIR, BOOTSTRAP_API_KEY: key });
    expect((await rest({ ...again, key }, '/v1/pets')).json).toEqual([created.json]);
  },
);
