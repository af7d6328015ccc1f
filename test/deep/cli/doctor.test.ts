// runs: embedded, postgres

import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Provider } from '../../features/tokens/provider.ts';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  freePort,
  onPlainPostgres,
  onPostgres,
  startServer,
} from '../../support/process.ts';
import { query } from '../../support/query.ts';
import { openSession } from '../../support/session.ts';
import { createRedis, hasRedis } from '../features/quota/redis.ts';

const database = databaseForEach(createOwnDatabase);

/** The exit code of `doctor --json`, and its findings by check. */
async function doctor(env: Env) {
  const { code, stdout, stderr } = await cli(['doctor', '--json'], env);
  expect({ stderr, isOneLine: /^[^\n]+\n$/.test(stdout) }).toEqual({
    stderr: '',
    isOneLine: true,
  });
  const { failures, warnings, findings } = JSON.parse(stdout);
  const entries = findings.map(({ check, ...finding }: { check: string }) => [
    check,
    finding,
  ]);
  return {
    code,
    stdout,
    failures,
    warnings,
    checks: Object.fromEntries(entries) as Record<string, unknown>,
  };
}
const ok = (found: unknown) => ({ state: 'ok', found });

(onPostgres ? test.skip : test)(
  'an embedded store is checked with and without a running service; a missing store is not created; a store of another PostgreSQL is a failure (skipped on PostgreSQL)',
  async () => {
    const { DATA_DIR: folder } = database.env as { DATA_DIR: string };
    const DATA_DIR = join(folder, 'later');
    const { checks, ...verdict } = await doctor({ DATA_DIR });
    expect(verdict).toMatchObject({ code: 0, failures: 0, warnings: 0 });
    expect(checks).toEqual({
      configuration: ok('usable'),
      disk: ok(expect.stringMatching(/^\d+ MiB free in /)),
      database: ok(
        `${DATA_DIR} (DATA_DIR) has no store yet: the first start creates it`,
      ),
    });
    expect(existsSync(DATA_DIR)).toBe(false);

    const service = await startServer({ DATA_DIR });
    const all = {
      configuration: ok('usable'),
      disk: ok(expect.any(String)),
      database: ok('usable'),
      migrations: ok('all are applied'),
      tables: ok('readable and writable, ids beyond all rows'),
    };
    expect(await doctor({ DATA_DIR })).toMatchObject({ code: 0, checks: all });
    await service.stop();
    expect(await doctor({ DATA_DIR })).toMatchObject({ code: 0, checks: all });

    mkdirSync(join(folder, 'postgres'));
    writeFileSync(join(folder, 'postgres/PG_VERSION'), '12\n');
    const foreign = await doctor(database.env);
    expect(foreign.code).toBe(1);
    expect(foreign.checks.database).toMatchObject({
      state: 'failure',
      found: expect.stringContaining('PostgreSQL 12'),
    });
    expect(foreign.checks).not.toHaveProperty('tables');
  },
);

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

test('an identity provider is asked for its keys; one that does not answer is a warning', async () => {
  const provider = new Provider();
  await provider.open();
  await provider.addKey('second', 'RS256');
  const env = { ...database.env, ...provider.env };
  const reachable = await doctor(env);
  expect(reachable.checks).toMatchObject({
    tokens: ok(`${provider.issuer} signs with P-256, RSA`),
  });
  provider.instead = (response) => response.end('<html>');
  const { code, warnings, checks } = await doctor(env);
  await provider.close();
  // An empty database has a warning of its own.
  expect({ code, warnings }).toEqual({
    code: 0,
    warnings: reachable.warnings + 1,
  });
  expect(checks.tokens).toEqual({
    state: 'warning',
    found: expect.stringMatching(
      /^http:.*\/openid-configuration cannot be read: Unexpected token '<'/,
    ),
    remedy: expect.stringContaining('JWT_ISSUER'),
  });
});

test('Redis is asked; one that does not answer is a warning', async () => {
  const REDIS_URL = `redis://127.0.0.1:${await freePort()}`;
  const { code, checks } = await doctor({ ...database.env, REDIS_URL });
  expect(code).toBe(0);
  expect(checks.redis).toEqual({
    state: 'warning',
    found: expect.stringContaining('ECONNREFUSED'),
    remedy: expect.stringContaining('REDIS_URL'),
  });
});

(hasRedis ? test : test.skip)(
  'Redis is usable (skipped without redis-server)',
  async () => {
    const redis = await createRedis();
    await redis.start();
    const { checks } = await doctor({ ...database.env, REDIS_URL: redis.url });
    await redis.kill();
    expect(checks.redis).toEqual(ok('usable'));
  },
);

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
  'a PostgreSQL is checked before its migration, with read nodes, and with ids behind the rows (PostgreSQL only)',
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

    const unused = `postgres://127.0.0.1:${await freePort()}/store`;
    const nodes = await doctor({
      ...manual,
      DATABASE_READ_URLS: `${url},${unused}`,
    });
    expect(nodes).toMatchObject({ code: 0, failures: 0, warnings: 1 });
    expect(nodes.checks[`read node ${new URL(url).host}`]).toEqual(
      ok('0 ms behind'),
    );
    expect(nodes.checks[`read node ${new URL(unused).host}`]).toMatchObject({
      state: 'warning',
    });

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
