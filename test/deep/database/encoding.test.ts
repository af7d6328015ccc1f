// runs: embedded

import { expect, test } from '../../support/jest.ts';
import { bringsServers, cli, startAndFail } from '../../support/process.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';

(bringsServers && hasPostgres ? test : test.skip)(
  'a database that is not in UTF8 is not migrated, not served, and named by doctor (where PostgreSQL is installed)',
  async () => {
    const postgres = await TestPostgres.start();
    try {
      for (const encoding of ['LATIN1', 'SQL_ASCII']) {
        const name = encoding.toLowerCase();
        await postgres.query(
          `create database ${name} encoding '${encoding}' locale 'C' template template0`,
        );
        const env = {
          DATABASE_URL: postgres.url(name),
          BOOTSTRAP_API_KEY: 'a-key-for-the-tests-of-encodings',
        };
        const found = `encoded in ${encoding}; it must be in UTF8`;
        const migrated = await cli(['migrate'], env);
        expect(migrated.code).not.toBe(0);
        expect(migrated.stdout + migrated.stderr).toContain(found);
        const started = await startAndFail(env);
        expect(started.stdout + started.stderr).toContain(found);
        const examined = await cli(['doctor'], env);
        expect(examined.code).not.toBe(0);
        expect(examined.stdout).toContain(found);
        const tables = `select 1 from pg_tables where schemaname = 'public'`;
        expect(await postgres.query(tables, [], name)).toEqual([]);
      }
    } finally {
      await postgres.remove();
    }
  },
);
