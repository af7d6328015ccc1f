// runs: embedded, postgres

import { readFileSync } from 'node:fs';
import { loadConfig } from '#engine/config/config.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../../src/modules.ts';
import { send } from '../../support/http.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import {
  eventually,
  killAll,
  onPlainPostgres,
  type ServerProcess,
  startAndFail,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import {
  hasPgBouncer,
  startPgBouncer,
  type TestPgBouncer,
} from '../../support/servers/pgbouncer.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import { TcpProxy } from '../../support/servers/tcp-proxy.ts';

const where =
  onPlainPostgres && hasPostgres && hasPgBouncer ? describe : describe.skip;

where(
  'through PgBouncer (where TEST_DATABASE_URL names a plain PostgreSQL, and PostgreSQL and PgBouncer are installed)',
  () => {
    let postgres: TestPostgres;
    let bouncer: TestPgBouncer | undefined;
    let count = 0;
    let database: string;

    beforeAll(async () => {
      postgres = await TestPostgres.start({
        log_statement: 'all',
        log_line_prefix: '%d ',
      });
    });
    afterAll(() => postgres.remove());
    beforeEach(async () => {
      count += 1;
      database = `shop_${count}`;
      await postgres.query(`create database ${database}`);
    });
    afterEach(async () => {
      await killAll();
      await bouncer?.stop();
      bouncer = undefined;
    });

    function start(env: Record<string, string> = {}): Promise<ServerProcess> {
      const url = (bouncer ?? postgres).url(database);
      return startServer({
        DATABASE_URL: url,
        BOOTSTRAP_API_KEY: 'a-key-for-the-tests-of-the-poolers',
        ...env,
      });
    }
    const startPooler = async (settings = {}) => {
      bouncer = await startPgBouncer(postgres, {
        pool_mode: 'transaction',
        ...settings,
      });
      return bouncer;
    };

    const hasLogged = ({ output }: ServerProcess, text: string) =>
      output.stdout.includes(text);

    /** Sends more concurrent requests than the pooler has connections. */
    async function sendManyRequests(nodes: ServerProcess[]): Promise<void> {
      const users = Array.from({ length: 200 }, async (_, at) => {
        const node = nodes[at % nodes.length] as ServerProcess;
        const created = await rest(node, '/v1/pets', {
          method: 'POST',
          json: { name: `pet ${at}`, categoryId: at },
        });
        expect(created.status).toBe(201);
        expect((await rest(node, `/v1/pets/${created.json.id}`)).json).toEqual(
          created.json,
        );
        expect(
          (await rest(node, `/v1/pets?limit=${1 + (at % 7)}&status=available`))
            .status,
        ).toBe(200);
      });
      await Promise.all(users);
    }

    test.each([{ ignore_startup_parameters: 'options' }, {}])(
      'a pooler that drops the search_path of the address is refused, because the store would be in another schema: %j',
      async (settings) => {
        const url = new URL((await startPooler(settings)).url(database));
        url.search = '?options=-c%20search_path%3Dshop';
        const DATABASE_URL = url.href;
        const message = /pooler drops the search_path .*alter role/;
        expect(await startAndFail({ DATABASE_URL })).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(message),
        });
        const tables = `select from pg_tables where tablename = 'pet'`;
        expect(await postgres.query(tables, [], database)).toEqual([]);
      },
    );

    test.each([
      [
        'with a pooler that swallows session settings',
        { ignore_startup_parameters: 'options', default_pool_size: 5 },
      ],
      [
        'with a pooler in session mode',
        { pool_mode: 'session', max_client_conn: 200, default_pool_size: 100 },
      ],
      ['without a pooler, with prepared statements', undefined],
    ])(
      '%s: two nodes migrate, serve and are ready, without an error',
      async (_, settings) => {
        if (settings) await startPooler(settings);
        const nodes = await Promise.all([start(), start()]);
        // The pools are as small as the pooler's. The load makes sessions
        // change clients often.
        await sendManyRequests(nodes);
        for (const node of nodes)
          expect((await send(node.origin, { path: '/readyz' })).status).toBe(
            200,
          );
        expect(nodes.map(({ output }) => output.stdout).join('')).not.toContain(
          '"err"',
        );
        const prepared = new RegExp(
          `^${database} LOG:  execute \\w+_pet_\\w+: `,
          'm',
        );
        expect(prepared.test(readFileSync(postgres.log, 'utf8'))).toBe(
          !settings,
        );
      },
    );

    test('the log names the settings that the role lacks once, and not at all when the role has them', async () => {
      await startPooler();
      const set = 'alter role postgres set';
      const statements = [
        `${set} idle_in_transaction_session_timeout = 60000`,
        `${set} statement_timeout = 60000`,
        `${set} jit = off`,
      ];
      const text = statements.join('","');
      const before = await start();
      await eventually(async () => hasLogged(before, text));
      expect(before.output.stdout.split(text)).toHaveLength(2);
      for (const statement of statements) await postgres.query(statement);
      await bouncer?.stop();
      await startPooler();
      const after = await start();
      await sendManyRequests([after]);
      expect(hasLogged(after, 'a pooler')).toBe(false);
      await postgres.query('alter role postgres reset all');
    });

    test('configured prepared statements are given up at the first error when the pooler loses them', async () => {
      await startPooler({ default_pool_size: 5 });
      const server = await start({ DATABASE_PREPARED_STATEMENTS: 'true' });
      await sendManyRequests([server]);
      await eventually(async () =>
        hasLogged(server, 'prepared statements do not survive here'),
      );
    });

    test('a process that starts while the pooler is unreachable detects the pooler once it is reachable', async () => {
      const proxy = new TcpProxy(
        new URL((await startPooler({ default_pool_size: 2 })).url(database)),
      );
      await proxy.open();
      proxy.cut();
      const late = await Database.open(
        loadConfig({ DATABASE_URL: proxy.url }).database,
        modelOf(modules),
      );
      await expect(late.ping()).rejects.toThrow('cannot be reached');
      await proxy.open();
      const pending = Array.from({ length: 50 }, (_, at) =>
        late.rows({ name: `test ${at % 3}`, text: `select ${at % 3}` }, []),
      );
      expect(await Promise.all(pending)).toEqual(
        pending.map((_, at) => [[`${at % 3}`]]),
      );
      await late.close();
      proxy.cut();
    });
  },
);
