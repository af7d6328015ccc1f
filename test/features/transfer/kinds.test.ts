// runs: embedded, postgres

import { csvColumnsOf, formats } from '#engine/features/transfer/formats.js';
import { importLines } from '#engine/features/transfer/import.js';
import type { Transfer } from '#engine/features/transfer/types.js';
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
    const { resources = [] } = passports.open({
      database: store.database,
    } as never);
    const [collection] = resources.flatMap(({ collections }) => collections);
    const { item, service } = collection as NonNullable<typeof collection>;
    const { items } = await service.list({ limit: 100 } as never);
    const { head, write, read, hasOnlyTexts } = formats[format];
    const columns = csvColumnsOf(item);
    const file = Buffer.from(head(columns) + write(columns, items));
    await sql(store.database, 'truncate "passport" restart identity');
    async function* bytes() {
      yield file;
    }
    const refused: unknown[] = [];
    await importLines(
      read(bytes(), columns, 100_000),
      {
        collection,
        progress: () => undefined,
        refused: (...one: unknown[]) => refused.push(one),
        signal: AbortSignal.timeout(60_000),
      } as unknown as Transfer,
      { isLenient: hasOnlyTexts },
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
