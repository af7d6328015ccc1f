// runs: embedded, postgres

import { openModules } from '#engine/api/module.js';
import { importLines } from '#engine/features/transfer/import.js';
import { kennelModules } from '../../modules/kennels/kennels.module.ts';
import { sql } from '../../support/database-access.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({}, undefined, { more: kennelModules });

/** Imports dogs of a kennel of its own, each with its mother's line. */
async function importDogs(name: string, mothers: Array<number | null>) {
  const { database, modules } = store;
  const [[kennel] = []] = await sql(
    database,
    `insert into kennel (name, clinic, changed_by) values ('${name}', 'a', 'x')
     returning id::text`,
  );
  const [[last] = []] = await sql(
    database,
    'select coalesce(max(id), 0)::text from dog',
  );
  async function* lines() {
    for (const [at, mother] of mothers.entries()) {
      const motherId = mother && Number(last) + mother;
      const kennelId = Number(kennel);
      const input = { name: 'd', kennelId, motherId, practice: 'a' };
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
    refused: (line: number, reason: string) =>
      void refused.push(`${line}: ${reason}`),
  };
  const { result, failure } = await importLines(lines(), transfer as never);
  return [result, refused, failure];
}

test('a line of a tenant may refer to the line before it', async () => {
  expect(await importDogs('k', [null, 1, 2, 3])).toEqual([
    { added: 4, same: 0, refused: 0 },
    [],
    undefined,
  ]);
});

test('a refused line is the last one that is read, because later ones refer to lines by their numbers', async () => {
  expect(await importDogs('l', [null, 99, 2, 3])).toEqual([
    { added: 1, same: 0, refused: 1 },
    [expect.stringMatching(/^2: /)],
    undefined,
  ]);
});
