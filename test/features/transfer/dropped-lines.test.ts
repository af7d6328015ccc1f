// runs: embedded, postgres

import type { Collection } from '#engine/api/resources/collection.js';
import { importLines } from '#engine/features/transfer/import.js';
import type { Transfer } from '#engine/features/transfer/types.js';
import { newPetSchema, petSchema } from '../../../src/pets/pet.schemas.ts';
import { PetService } from '../../../src/pets/pet.service.ts';
import { sql } from '../../support/database-access.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** Lines of an import whose rows a trigger of the database drops. */

const store = storeForAll({}, async () => {
  await sql(
    store.database,
    'create function drop() returns trigger language plpgsql as $$ begin return null; end $$',
  );
  await sql(
    store.database,
    "create trigger dropping before insert on pet for each row when (new.name = 'dropped') execute function drop()",
  );
});
beforeEach(() => store.empty());

async function* linesOf(names: string[]) {
  for (const [at, name] of names.entries()) {
    const input = { name, categoryId: 1 };
    yield { line: at + 1, input };
  }
}

test.each([
  { source: undefined, names: ['dropped'] },
  { source: undefined, names: ['Rex', 'dropped', 'Tom'] },
  { source: 'pets.ndjson', names: ['dropped'] },
  { source: 'pets.ndjson', names: ['Rex', 'dropped', 'Tom'] },
])('are refused alone: $names of $source', async ({ source, names }) => {
  const service = new PetService(store.database);
  const collection = { name: 'pets', input: newPetSchema, item: petSchema };
  const refused: unknown[] = [];
  const transfer = {
    collection: { ...collection, service } as unknown as Collection,
    maxLength: 10_000,
    signal: AbortSignal.timeout(60_000),
    progress: () => undefined,
    refused: (...one: unknown[]) => refused.push(one),
  };
  const options = source ? { source } : {};
  const lines = linesOf(names);
  const report = await importLines(lines, transfer as Transfer, options);
  expect(report.failure).toBeUndefined();
  expect(report.result).toMatchObject({
    added: names.length - 1,
    refused: 1,
  });
  const line = names.indexOf('dropped') + 1;
  const reason = expect.stringMatching(/^the database refuses it: /);
  expect(refused).toEqual([[line, reason]]);
});
