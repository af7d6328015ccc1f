import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import pg from 'pg';
import { databaseForEach } from '../../support/each.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, type ServerProcess, startServer } from '../../support/process.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
let agent: Agent;
let server: ServerProcess;
beforeEach(async () => {
  agent = new Agent({ keepAlive: true });
  // A connection that outlived its last answer would hold the drain up for longer than a test may take.
  server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: key,
    DRAIN_TIMEOUT_MS: '600000',
    KEEP_ALIVE_TIMEOUT_MS: '600000',
  });
});
afterEach(() => {
  agent.destroy();
});

interface Answer {
  status: number | undefined;
  connection: string | undefined;
  body: unknown;
}

/** One request on a kept-alive connection. */
function call(method: string, path: string, json?: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, ...(json ? { 'content-type': 'application/json' } : {}) };
  return new Promise((done, fail) => {
    const outgoing = request(`${server.origin}${path}`, { agent, method, headers }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      incoming.on('error', fail).on('end', () => {
        done({ status: incoming.statusCode, connection: incoming.headers.connection, body: JSON.parse(text) });
      });
    });
    outgoing.on('error', fail);
    outgoing.end(json && JSON.stringify(json));
  });
}

const rex = { name: 'Rex', categoryId: 5 };
const mutation = { query: 'mutation { createPet(input: { name: "Bella", categoryId: 6 }) { name } }' };
const query = { query: '{ pets { id } }' };

const drained = { code: 0, signal: null, stderr: '' };

describe.each(['SIGTERM', 'SIGINT'] as const)('after %s', (signal) => {
  test('idle kept-alive connections are closed and the server ends with exit code 0', async () => {
    expect(await call('GET', '/v1/pets')).toMatchObject({ status: 200, connection: 'keep-alive' });
    expect(await server.stop(signal)).toMatchObject(drained);
  });

  test('a connection on which nothing was asked is closed', async () => {
    // Browsers open one in advance, and undici when a subscription is aborted.
    const { hostname, port } = new URL(server.origin);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    expect(await call('GET', '/v1/pets')).toMatchObject({ status: 200 });
    expect(await server.stop(signal)).toMatchObject(drained);
    socket.destroy();
  });

  test('a second signal does not cut the drain short', async () => {
    server.child.kill(signal);
    expect(await server.stop(signal)).toMatchObject(drained);
  });

  test('whatever was acknowledged is kept, whatever was not was refused: no answer is broken off', async () => {
    const calls = Array.from({ length: 60 }, (_, number) =>
      number % 2 ? call('POST', '/v1/pets', rex) : call('POST', '/graphql', mutation),
    );
    const first = await Promise.race(calls);
    expect(first.status).toBeLessThan(300);
    const ended = server.stop(signal);
    const outcomes = await Promise.allSettled(calls);
    expect(await ended).toMatchObject(drained);
    const kept = outcomes.filter((one) => one.status === 'fulfilled');
    for (const { value } of kept) expect([200, 201]).toContain(value.status);

    server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    const { body } = await call('GET', '/v1/pets?limit=100');
    expect(body).toHaveLength(kept.length);
  });

  const onServer = onPostgres ? test : test.skip;
  onServer(
    'requests in flight on both faces are answered (skipped on the embedded store: no lock to hold)',
    async () => {
      const { DATABASE_URL } = database.env as { DATABASE_URL: string };
      const holder = new pg.Client(DATABASE_URL);
      await holder.connect();
      // Another connection looks: within its transaction the holder would see the same activity for ever.
      const observer = new pg.Client(DATABASE_URL);
      await observer.connect();
      await holder.query('begin; lock table pet in access exclusive mode');
      const calls = [
        call('POST', '/v1/pets', rex),
        call('POST', '/graphql', mutation),
        call('GET', '/v1/pets'),
        call('POST', '/graphql', query),
      ];
      await eventually(async () => {
        const { rows } = await observer.query(
          `select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows[0].waiting >= 2;
      });
      const ended = server.stop(signal);
      await eventually(async () => server.output.stdout.includes('"draining"'));
      await holder.query('commit');
      await holder.end();
      await observer.end();
      expect(await Promise.all(calls)).toMatchObject([
        { status: 201, connection: 'close', body: { name: 'Rex' } },
        { status: 200, connection: 'close', body: { data: { createPet: { name: 'Bella' } } } },
        { status: 200, connection: 'close' },
        { status: 200, connection: 'close' },
      ]);
      expect(await ended).toMatchObject(drained);
    },
  );
});

test.each(['SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const)('after %s it drains, too', async (signal) => {
  expect(await call('GET', '/v1/pets')).toMatchObject({ status: 200, connection: 'keep-alive' });
  const ended = await server.stop(signal);
  expect(ended).toMatchObject(drained);
  expect(ended.stdout).toContain('"draining"');
});
