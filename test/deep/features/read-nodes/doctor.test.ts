// runs: embedded, postgres

import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { freePort, onPlainPostgres } from '../../../support/process.ts';
import { doctor, ok } from '../../support/doctor.ts';

const database = databaseForEach(createOwnDatabase);

(onPlainPostgres ? test : test.skip)(
  'a read node that does not answer is a warning (PostgreSQL only)',
  async () => {
    const { DATABASE_URL: url } = database.env as { DATABASE_URL: string };
    const unused = `postgres://127.0.0.1:${await freePort()}/store`;
    const nodes = await doctor({
      ...database.env,
      DATABASE_READ_URLS: `${url},${unused}`,
    });
    expect(nodes).toMatchObject({ code: 0, failures: 0 });
    expect(nodes.checks[`read node ${new URL(url).host}`]).toEqual(
      ok('0 ms behind'),
    );
    expect(nodes.checks[`read node ${new URL(unused).host}`]).toMatchObject({
      state: 'warning',
    });
  },
);
