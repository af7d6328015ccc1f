// runs: embedded, postgres

import { csvColumnsOf, formats } from '#engine/features/transfer/formats.js';
import {
  expected,
  inputs,
  passport,
  passports,
} from '../../modules/passports/passports.module.ts';
import { sql } from '../../support/database-access.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { exportAndImport } from '../../support/transfer.ts';

/** Files of members that are a UUID, a day, any JSON, or texts. */

const store = storeForAll({}, undefined, { more: [passports] });
beforeEach(() => sql(store.database, 'truncate "passport" restart identity'));

async function listed(): Promise<unknown[]> {
  const { json } = await rest(store, '/v1/passports?limit=100');
  return json.map(({ id, ...item }: { id: number }) => ({ ...item }));
}

test.each(['ndjson', 'csv'] as const)(
  'values are exported to %s and imported',
  async (format) => {
    for (const json of inputs)
      await rest(store, '/v1/passports', { method: 'POST', json });
    const { database } = store;
    const refused = await exportAndImport(
      database,
      passports,
      'passport',
      format,
    );
    expect(refused).toEqual([]);
    expect(await listed()).toEqual(expected);
  },
);

test('a field of CSV that is no JSON is refused with its line', async () => {
  async function* bytes() {
    yield Buffer.from('data,marks\n{,[]\n1,x\n');
  }
  const columns = csvColumnsOf(passport.schemas.item);
  const lines = [];
  for await (const line of formats.csv.read(bytes(), columns, 100))
    lines.push(line);
  const fault = expect.stringMatching(/^The line is not acceptable JSON: /);
  expect(lines).toEqual([
    { line: 2, fault },
    { line: 3, fault },
  ]);
});
