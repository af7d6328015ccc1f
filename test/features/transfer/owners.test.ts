import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openModules } from '#engine/api/module.js';
import type { Collection } from '#engine/api/resources/collection.js';
import { exportItems } from '#engine/features/transfer/export.js';
import { importFile } from '#engine/features/transfer/import.js';
import { seed } from '#engine/features/transfer/seed.js';
import { callersForAll } from '../../modules/diaries/callers.ts';
import { diariesModule } from '../../modules/diaries/diaries.module.ts';
import { sql } from '../../support/database-access.ts';
import { newFolder } from '../../support/folder.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('rows of callers', () => {
  const store = storeForAll({}, undefined, {
    more: [diariesModule],
  });
  const callers = callersForAll(store);

  test('operators export and import the rows of all, which keep their owners; a seed belongs to the configured key', async () => {
    const { ada, all, list, owners } = callers;
    const collection = openModules(store.modules, store.database, {})
      .flatMap(({ collections = [] }) => collections)
      .find(({ name }) => name === 'diaries');
    const transfer = {
      collection: collection as Collection,
      maxLength: 10_000,
      signal: new AbortController().signal,
      progress: () => undefined,
      refused: (_: number, reason: string) => {
        throw new Error(reason);
      },
    };
    for (const format of ['ndjson', 'csv']) {
      const file = join(await newFolder(), `diaries.${format}`);
      const { items } = await exportItems(transfer, { output: file });
      expect(items).toBe(2);
      await sql(store.database, 'delete from diary');
      await importFile(transfer, { input: file });
      const [one, other] = await list(all, '/diaries');
      expect([one.createdBy, other.createdBy]).toEqual(owners.slice(0, 2));
      expect((await list(ada, '/diaries')).map(({ id }: any) => id)).toEqual([
        one.id,
      ]);
    }
    const sample = () => ({ title: 'Seed', mood: 'fine' });
    const seeded = {
      ...transfer,
      collection: { ...collection, sample } as Collection,
    };
    await seed(seeded, { count: 1, seed: 1 });
    const { createdBy } = (await list(all, '/diaries')).at(-1);
    expect(createdBy).toBe('key:0');

    const usable = ['ada', 'key:7', 'x'.repeat(255)];
    const wrong = ['', 'key:', 'key:ada', 'x'.repeat(256), 'a\u0000'];
    const reasons: string[] = [];
    const refused = (_: number, reason: string) => reasons.push(reason);
    const file = join(await newFolder(), 'diaries.ndjson');
    const lines = [...usable, ...wrong].map((createdBy) =>
      JSON.stringify({
        title: `of ${createdBy.length}`,
        mood: 'fine',
        createdBy,
      }),
    );
    await writeFile(file, lines.join('\n'));
    const { result } = await importFile(
      { ...transfer, refused },
      { input: file, dryRun: true },
    );
    expect(result).toMatchObject({ added: usable.length });
    expect(reasons).toHaveLength(wrong.length);
    expect(reasons.join()).not.toMatch(/title|mood/);
  });
});
