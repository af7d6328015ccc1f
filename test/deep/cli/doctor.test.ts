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
const onServer = onPlainPostgres ? test : test.skip;

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

onServer(
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

/** What `doctor` finds after SQL of an operator, with another role if any. */
async function examined(text: string, role?: string) {
  await cli(['migrate'], database.env as Env);
  const { DATABASE_URL } = database.env as { DATABASE_URL: string };
  await query(DATABASE_URL, text);
  const url = new URL(DATABASE_URL);
  if (role) Object.assign(url, { username: role, password: role });
  return doctor({
    DATABASE_URL: url.href,
    DATABASE_STATEMENT_TIMEOUT_MS: '500',
  });
}

onServer.each(['access exclusive', 'share'])(
  'a table that is locked (%s) needs another remedy than a migration (PostgreSQL only)',
  async (mode) => {
    await cli(['migrate'], database.env as Env);
    const session = await openSession(database);
    await session.query(`begin; lock table pet in ${mode} mode`);
    const { checks } = await doctor({
      ...database.env,
      DATABASE_STATEMENT_TIMEOUT_MS: '500',
    });
    await session.end();
    expect(checks.tables).toEqual({
      state: 'failure',
      found: expect.stringMatching(
        /^The database \(DATABASE_URL\) cannot answer in time: .*statement timeout/,
      ),
      remedy: expect.stringContaining('animalstorequeueold'),
    });
  },
);

onServer(
  'a write that the disk refuses is a failure, with its own remedy (PostgreSQL only)',
  async () => {
    const { code, checks } = await examined(`
      create function full_disk() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
      create trigger full_disk before insert on idempotency_key
        for each row execute function full_disk()`);
    expect(code).toBe(1);
    expect(checks.tables).toEqual({
      state: 'failure',
      found:
        'The database (DATABASE_URL) cannot write now: could not extend file',
      remedy: expect.stringContaining('disk'),
    });
  },
);

onServer(
  'a role that may only select and insert is a warning with the rights that it lacks, and so are absent and invalid indexes (PostgreSQL only)',
  async () => {
    const role = `reader_${Date.now()}`;
    const { code, failures, checks } = await examined(
      `drop index pet_status_id_index;
      update pg_index set indisvalid = false
        where indexrelid = 'idempotency_key_created_at_index'::regclass;
      create role ${role} login password '${role}';
      grant select, insert on all tables in schema public to ${role};
      grant update on pet to ${role};
      grant usage on all sequences in schema public to ${role}`,
      role,
    );
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    const rows = await query(
      DATABASE_URL,
      'select count(*)::int from idempotency_key',
    );
    await query(DATABASE_URL, `drop owned by ${role}; drop role ${role}`);
    expect({ code, failures, rows }).toEqual({
      code: 0,
      failures: 0,
      rows: [{ count: 0 }],
    });
    const {
      'missing rights': rights,
      'missing indexes': indexes,
      tables,
    } = checks as Record<string, any>;
    expect(tables.state).toBe('ok');
    expect(rights.state).toBe('warning');
    const lacking = rights.found.split(', ');
    expect(lacking).toContain('delete on pet');
    expect(lacking).toContain('update on api_key');
    expect(lacking).not.toContain('update on pet');
    expect(lacking).not.toContain('insert on pet');
    expect(indexes.state).toBe('warning');
    expect(indexes.found.split(', ').sort()).toEqual([
      'idempotency_key_created_at_index',
      'pet_status_id_index',
    ]);
  },
);
