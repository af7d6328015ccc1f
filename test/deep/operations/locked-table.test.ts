// runs: embedded, postgres, pgbouncer

import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { hostname } from 'node:os';
import type pg from 'pg';
import { creators } from '../../support/apis.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import {
  bootstrapKey,
  eventually,
  onPostgres,
  ownsSessions,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { linesOf, untilLogged } from '../../support/process-log.ts';
import { rest } from '../../support/rest.ts';
import { openSession } from '../../support/session.ts';
import { operations, type Refusal } from './refusal.ts';

/** Sends a whole creation. @returns the request, which a test can destroy */
function begin(
  { origin, key }: ServerProcess,
  path: string,
  body: unknown,
): ClientRequest {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  };
  const outgoing = request(`${origin}${path}`, {
    method: 'POST',
    headers,
    agent: false,
  });
  outgoing.on('error', () => undefined).end(JSON.stringify(body));
  return outgoing;
}

const mutation =
  'mutation { createPet(input: { name: "ghost", categoryId: 5 }) { id } }';

/** Statements that wait for a lock. */
const notGranted = `select 1 from pg_locks join pg_database on pg_database.oid = database
      where datname = current_database() and not granted`;

(onPostgres ? describe : describe.skip)(
  'while another session holds the table (PostgreSQL only: the embedded store has one session at a time)',
  () => {
    const database = databaseForEach();
    let session: pg.Client;
    beforeEach(async () => {
      session = await openSession(database);
    });
    afterEach(() => session.end());
    const env = () => ({ ...database.env, BOOTSTRAP_API_KEY: bootstrapKey });
    const lock = 'begin; lock table pet in access exclusive mode';

    test('new requests are refused at once on both APIs when queued requests make no progress, and /readyz stays 200', async () => {
      const server = await startServer({
        ...env(),
        DATABASE_STATEMENT_TIMEOUT_MS: '5000',
      });
      await session.query(lock);
      const busy: Refusal = {
        code: 'SERVICE_UNAVAILABLE',
        status: 503,
        message: 'Too many requests wait for the database; try again shortly.',
        retryAfter: 1,
      };
      const all = Object.values(operations).flatMap((byFace) =>
        Object.values(byFace),
      );
      const refused = new Map<unknown, Refusal>();
      const calls: Promise<unknown>[] = [];
      const answers = new Set<string>();
      await eventually(async () => {
        for (const operation of all) {
          const note = (refusal: Refusal) =>
            refusal.message === busy.message && refused.set(operation, refusal);
          const call = operation(server).then(note);
          // A rejection before `Promise.all` must not count as unhandled.
          call.catch(() => undefined);
          calls.push(call);
        }
        for (const path of ['/livez', '/readyz'])
          answers.add((await send(server.origin, { path })).text);
        return refused.size === all.length;
      });
      await Promise.all(calls);
      expect([...refused.values()]).toEqual(all.map(() => busy));
      // Other tables are served. Behind a pooler the check may time out: the
      // locked statements hold the pooler's connections.
      if (ownsSessions) expect([...answers]).toEqual(['{"status":"ok"}']);
      await session.query('rollback');
    });

    test('a drain answers the requests in flight on both APIs, and closes their connections', async () => {
      const server = await startServer({
        ...env(),
        DRAIN_TIMEOUT_MS: '600000',
      });
      const observer = await openSession(database);
      await session.query(lock);
      const list = async (path: string) => {
        const authorization = `Bearer ${bootstrapKey}`;
        const { status, headers } = await send(server.origin, {
          path,
          headers: { authorization },
        });
        return [status, headers.connection];
      };
      const calls = [
        ...creators.map(
          async ({ create }) =>
            (await create(server, { name: 'Rex', categoryId: 5 })).outcome.name,
        ),
        list('/v1/pets'),
        list('/graphql?query={pets{id}}'),
      ];
      // In its transaction the session of the lock would always see the same
      // snapshot of the activity.
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await eventually(
        async () => ((await observer.query(waiting)).rowCount ?? 0) >= 2,
      );
      await observer.end();
      const ended = server.stop();
      await untilLogged(server, 'draining');
      await session.query('commit');
      expect(await Promise.all(calls)).toEqual([
        'Rex',
        'Rex',
        [200, 'close'],
        [200, 'close'],
      ]);
      expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    });

    test('requests that outlive the drain are counted in the last line', async () => {
      const server = await startServer({ ...env(), DRAIN_TIMEOUT_MS: '300' });
      await session.query(lock);
      const outgoing = begin(server, '/v1/pets', {
        name: 'Rex',
        categoryId: 5,
      });
      await once(outgoing, 'finish');
      const { code, stdout } = await server.stop();
      expect([code, linesOf(stdout).at(-1)]).toMatchObject([
        1,
        { level: 50, requests: 1, msg: 'closed before all was finished' },
      ]);
    });

    test('with all defaults a drain answers the requests in flight', async () => {
      const server = await startServer({
        ...env(),
        DATABASE_STATEMENT_TIMEOUT_MS: '1000',
      });
      await session.query(lock);
      const creations = creators.map(({ create }) =>
        create(server, { name: 'Rex', categoryId: 5 }),
      );
      await eventually(
        async () => (await session.query(notGranted)).rows.length > 0,
      );
      const ended = server.stop();
      const answers = await Promise.all(creations);
      expect(answers.map(({ outcome }) => outcome.status)).toEqual([503, 503]);
      expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    });

    test('queued creations whose clients disconnect are not written, and each has its line in the log', async () => {
      // No statement times out.
      const server = await startMeasured({
        ...env(),
        DATABASE_STATEMENT_TIMEOUT_MS: '600000',
      });
      const create = (name: string) =>
        rest(server, '/v1/pets', {
          method: 'POST',
          json: { name, categoryId: 5 },
        });
      const active = async () =>
        (await server.metrics()).get('http_server_active_requests');
      await session.query(lock);
      const first = create('Rex');
      await eventually(
        async () => (await session.query(notGranted)).rows.length > 0,
      );
      const gone = Array.from({ length: 10 }, () => [
        begin(server, '/v1/pets', { name: 'ghost', categoryId: 5 }),
        begin(server, '/graphql', { query: mutation }),
      ]).flat();
      await eventually(async () => (await active()) === 21);
      const patient = create('Bella');
      await eventually(async () => (await active()) === 22);
      for (const outgoing of gone) outgoing.destroy();
      const msg = 'aborted by the client';
      await untilLogged(server, msg, gone.length);

      await session.query('rollback');
      expect([(await first).status, (await patient).status]).toEqual([
        201, 201,
      ]);
      const { json } = await rest(server, '/v1/pets');
      expect(json.map(({ name }: { name: string }) => name)).toEqual([
        'Rex',
        'Bella',
      ]);
      expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
      const anything = {
        level: 30,
        time: expect.any(Number),
        pid: server.child.pid,
        host: hostname(),
        reqId: expect.any(String),
        address: '127.0.0.1',
        ms: expect.any(Number),
        key: 0,
        msg,
      };
      const rested = {
        req: { method: 'POST', path: '/v1/pets' },
        api: 'rest',
        operation: 'createPet',
      };
      const queried = {
        req: { method: 'POST', path: '/graphql' },
        api: 'graphql',
        fields: ['createPet'],
      };
      for (const operation of [rested, queried]) {
        const found = linesOf(server.output.stdout, msg).filter(
          ({ api }) => api === operation.api,
        );
        expect(found).toEqual(Array(10).fill({ ...anything, ...operation }));
      }
    });
  },
);
