import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { onPostgres, startServer } from '../../../support/process.ts';
import { doctor, ok } from '../../support/doctor.ts';

const database = databaseForEach(createOwnDatabase);

(onPostgres ? test.skip : test)(
  'an embedded store is checked with and without a running service; a missing store is not created; a store of another PostgreSQL is a failure (skipped on PostgreSQL)',
  async () => {
    const { DATA_DIR: folder } = database.env as { DATA_DIR: string };
    const DATA_DIR = join(folder, 'later');
    const { checks, ...verdict } = await doctor({ DATA_DIR });
    expect(verdict).toMatchObject({ code: 0, failures: 0, warnings: 0 });
    expect(checks).toEqual({
      configuration: ok('usable'),
      modules: ok('usable'),
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
