// runs: embedded, postgres

import { openModules } from '#engine/api/module.js';
import { importLines } from '#engine/features/transfer/import.js';
import { kennelModules } from '../../modules/kennels/kennels.module.ts';
import { sql } from '../../support/database-access.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({}, undefined, { more: kennelModules });

test('a line of a tenant may refer to the line before it', async () => {
  const { database, modules } = store;
  await sql(
    database,
    `insert into kennel (name, clinic, changed_by) values ('k', 'a', 'x')`,
  );
  async function* lines() {
    for (const [at, motherId] of [null, 1, 2, 3].entries()) {
      const input = { name: 'd', kennelId: 1, motherId, practice: 'a' };
      yield { line: at + 1, input };
    }
  }
  const collection = openModules(modules, database, {})
    .flatMap(({ collections = [] }) => collections)
    .find(({ name }) => name === 'dogs');
  const refused: string[] = [];
  const transfer = {
    collection,
    signal: new AbortController().signal,
    progress: () => undefined,
    refused: (_: number, reason: string) => void refused.push(reason),
  };
  const { result } = await importLines(lines(), transfer as never);
  expect([result, refused]).toEqual([{ added: 4, same: 0, refused: 0 }, []]);
});
