// runs: embedded, postgres

import type pg from 'pg';
import { Call } from '#engine/call.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../../src/modules.ts';
import { optionsFor } from '../../support/database.ts';
import { openStream } from '../../support/events.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { type MeasuredServer, startMeasured } from '../../support/metrics.ts';
import { cli, eventually, ownsSessions } from '../../support/process.ts';
import { linesOf, untilLogged } from '../../support/process-log.ts';
import { rest } from '../../support/rest.ts';
import { TcpProxy } from '../../support/servers/tcp-proxy.ts';
import { openSession, urlOf } from '../../support/session.ts';
import { operations } from './refusal.ts';

const newPet = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };

(ownsSessions ? describe : describe.skip)(
  'the state of the database in the log (PostgreSQL only, without a pooler)',
  () => {
    const database = databaseForEach();
    let proxy: TcpProxy;
    let server: MeasuredServer;
    let session: pg.Client;
    beforeEach(async () => {
      proxy = new TcpProxy(new URL(urlOf(database)));
      await proxy.open();
      const url = new URL(proxy.url);
      url.password = 'hunter2';
      url.searchParams.set('application_name', 'swordfish');
      const limits = {
        DATABASE_POOL_MAX: '2',
        DATABASE_STATEMENT_TIMEOUT_MS: '3000',
      };
      server = await startMeasured({ ...limits, DATABASE_URL: url.href });
      session = await openSession(database);
    });
    afterEach(async () => {
      await session.end();
      proxy.cut();
    });

    const listed = async () => (await rest(server, '/v1/pets')).status;
    const graphQL = async () => (await operations.GraphQL.list(server)).status;

    /** The lines that are neither about a request nor about the start. */
    const lines = () =>
      linesOf(server.output.stdout)
        .filter(
          ({ msg }) =>
            !/answered|listening|migration applied|started|bootstrap key/i.test(
              msg,
            ),
        )
        .map(({ time, pid, host, ...line }) => line);

    test('a lost database has one line, regardless of the number of failed requests, and its return one line', async () => {
      proxy.cut();
      for (let time = 1; time <= 10; time += 1)
        expect([await listed(), await graphQL()]).toEqual([503, 503]);
      const { status, headers, text } = await send(server.origin, {
        path: '/readyz',
      });
      const body = {
        code: 'SERVICE_UNAVAILABLE',
        status: 503,
        message: expect.stringContaining('database'),
      };
      expect([status, JSON.parse(text), headers['retry-after']]).toEqual([
        503,
        body,
        '1',
      ]);
      expect((await send(server.origin, { path: '/livez' })).status).toBe(200);
      await proxy.open();
      await eventually(async () => (await listed()) === 200);
      await eventually(async () => lines().length === 2);
      const code = expect.stringMatching(/^ECONN(?:REFUSED|RESET)$/);
      const [, back] = lines();
      expect(lines()).toEqual([
        {
          level: 40,
          code,
          reason: expect.any(String),
          msg: 'the database is lost',
        },
        {
          level: 30,
          ms: expect.any(Number),
          failures: expect.any(Number),
          msg: 'the database is back',
        },
      ]);
      expect(back?.failures).toBeGreaterThanOrEqual(20);
      const { host, pathname } = new URL(proxy.url);
      const config = { DATABASE_URL: `postgres://${host}${pathname}` };
      expect(linesOf(server.output.stdout, 'started')).toMatchObject([
        { config },
      ]);
      expect(server.output.stdout).not.toMatch(/stack|hunter2|swordfish/);
    });

    test('a live list of an issued key goes on after the outage, in which its key cannot be looked up', async () => {
      const env = { DATABASE_URL: urlOf(database) };
      const issued = await cli(['keys', 'issue', '--name', 'shop'], env);
      const key = /ask_\w+/.exec(issued.stdout)?.[0] ?? '';
      const stream = await openStream(server, {
        method: 'GET',
        path: '/v1/pets',
        key,
      });
      const failed = 'animal_store_key_lookups_total{result="failed"}';
      proxy.cut();
      await eventually(async () => {
        const series = await server.metrics();
        return (series.get(failed) ?? 0) > 0;
      });
      await proxy.open();
      await eventually(
        async () => (await rest(server, '/v1/pets', newPet)).status === 201,
      );
      await stream.until(1);
      expect(stream.events).toMatchObject([{ data: { name: 'Rex' } }]);
      stream.close();
    });

    test('a creation with an unknown outcome has its own line with the id of its request', async () => {
      proxy.cutsAt = 'INSERT 0 1';
      const headers = { 'x-request-id': 'whose-outcome-is-unknown' };
      expect(
        await rest(server, '/v1/pets', { ...newPet, headers }),
      ).toMatchObject({ status: 503 });
      await untilLogged(server, 'outcome unknown');
      expect(lines()).toContainEqual({
        level: 40,
        reqId: 'whose-outcome-is-unknown',
        code: 'SERVICE_UNAVAILABLE',
        reason: 'Connection terminated unexpectedly',
        msg: 'outcome unknown',
      });
    });

    test('a full pool has one line, and a free connection one line', async () => {
      const logged: object[] = [];
      const add = (fields: object, msg: string) =>
        void logged.push({ ...fields, msg });
      const log = { info: add, warn: add, error: add };
      const options = await optionsFor({ DATABASE_URL: urlOf(database) });
      const pool = await Database.open(
        { ...options, poolMax: 2, log },
        modelOf(modules),
      );
      await session.query('select pg_advisory_lock(7)');
      // Each table may have one connection.
      const waiting = ['visit', 'tag', 'pet'].map((collection) =>
        pool.inTurn(new Call(), { collection, operation: 'wait' }, () =>
          pool.rows(
            { name: '', text: 'select pg_advisory_xact_lock_shared(7)' },
            [],
          ),
        ),
      );
      await eventually(async () => logged.length === 1);
      await session.query('select pg_advisory_unlock(7)');
      await Promise.all(waiting);
      await eventually(async () => logged.length === 2);
      expect(logged).toEqual([
        {
          connections: 2,
          waiting: 1,
          msg: 'all connections to the database are in use',
        },
        {
          ms: expect.any(Number),
          msg: 'connections to the database are free again',
        },
      ]);
      await pool.close();
    });

    test('a locked table does not count as a lost database: one line has the failure and PostgreSQL’s code', async () => {
      const before = lines().length;
      await session.query('begin; lock table pet in access exclusive mode');
      expect(await Promise.all([listed(), listed()])).toEqual([503, 503]);
      await session.query('rollback');
      expect(await listed()).toBe(200);
      const reason = 'canceling statement due to statement timeout';
      const failing = {
        level: 40,
        code: '57014',
        reason,
        msg: 'database statements are failing',
      };
      expect(lines().slice(before)).toEqual([failing]);
    });
  },
);
