// runs: embedded, postgres

import { once } from 'node:events';
import { createServer } from 'node:net';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  freePort,
  onPlainPostgres,
} from '../../support/process.ts';
import { openSession, query } from '../../support/session.ts';
import { doctor } from '../support/doctor.ts';

const database = databaseForEach(createOwnDatabase);

test('every invalid variable is named without its secret; the text has a remedy and the numbers of failures and warnings', async () => {
  const secret = 'a-secret-of-the-shop';
  const DATABASE_URL = `postgres://shop:${secret}@127.0.0.1:1/none`;
  const env = {
    PORT: '70000',
    DATABASE_POOL_MAX: 'many',
    DATABASE_URL,
    BOOTSTRAP_API_KEY: 'short',
  };
  const { code, stdout, checks } = await doctor(env);
  expect(code).toBe(1);
  const { state, found, remedy } = checks.configuration as Record<
    string,
    string
  >;
  expect({ state, remedy }).toEqual({
    state: 'failure',
    remedy: expect.stringContaining('configuration.md'),
  });
  for (const name of ['PORT', 'DATABASE_POOL_MAX', 'BOOTSTRAP_API_KEY']) {
    expect(found).toMatch(new RegExp(`^ +${name} `, 'm'));
  }
  expect(stdout).not.toMatch(new RegExp(`${secret}|short`));
  const text =
    /^failure +configuration +.*\n.*PORT .*\n +-> .*configuration.md.*\nfailures: 1, warnings: 0\n$/;
  expect(await cli(['doctor'], { PORT: 'none' })).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(text),
  });
});

test('a database that refuses connections or does not answer is a failure', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  for (const port of [
    await freePort(),
    (silent.address() as { port: number }).port,
  ]) {
    const DATABASE_URL = `postgres://shop:a-password@127.0.0.1:${port}/store`;
    const { code, failures, checks } = await doctor({
      DATABASE_URL,
      DATABASE_CONNECT_TIMEOUT_MS: '500',
    });
    expect({ code, failures }).toEqual({ code: 1, failures: 1 });
    expect(checks.database).toEqual({
      state: 'failure',
      found: expect.stringMatching(
        /^The database \(DATABASE_URL\) cannot be reached: .*(?:ECONNREFUSED|timeout)/,
      ),
      remedy: expect.stringContaining('DATABASE_URL'),
    });
  }
  silent.close();
});

(onPlainPostgres ? test : test.skip)(
  'a PostgreSQL is checked before its migration, and with ids behind the rows (PostgreSQL only)',
  async () => {
    const { DATABASE_URL: url } = database.env as { DATABASE_URL: string };
    const manual = { ...database.env, MIGRATE_ON_START: 'false' };
    expect((await doctor(database.env)).checks.migrations).toMatchObject({
      state: 'warning',
    });
    const found = expect.stringMatching(/^not applied: 2026/);
    const migrations = {
      state: 'failure',
      found,
      remedy: 'animal-store migrate',
    };
    expect(await doctor(manual)).toMatchObject({
      code: 1,
      checks: { migrations },
    });
    // `doctor` has not migrated the database.
    expect((await cli(['migrate', '--json'], manual)).stdout).toMatch(
      /^\{"applied":\["2026/,
    );

    await query(
      url,
      `insert into pet (id, name, category_id, status) values (1000, 'Rex', 5, 'available')`,
    );
    const tables = { state: 'failure', found: expect.stringContaining('pet') };
    expect(await doctor(manual)).toMatchObject({ code: 1, checks: { tables } });
  },
);

(onPlainPostgres ? test : test.skip)(
  'a locked table needs another remedy than a migration (PostgreSQL only)',
  async () => {
    await cli(['migrate'], database.env as Env);
    const session = await openSession(database);
    await session.query('begin; lock table pet in access exclusive mode');
    const { checks } = await doctor({
      ...database.env,
      DATABASE_STATEMENT_TIMEOUT_MS: '500',
    });
    await session.end();
    expect(checks.tables).toEqual({
      state: 'failure',
      found: expect.stringContaining('statement timeout'),
      remedy: expect.stringContaining('animalstorequeueold'),
    });
  },
);
