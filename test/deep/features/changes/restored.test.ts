// runs: embedded

import { Database } from '#engine/database/database.js';
import { complete } from '#engine/feature.js';
import { backUp, restore } from '#engine/features/backup/backup.js';
import { modelOf } from '#engine/process/model.js';
import { ledgersModule } from '../../../modules/ledgers/ledgers.module.ts';
import { optionsFor } from '../../../support/database.ts';
import { sql } from '../../../support/database-access.ts';
import { features } from '../../../support/features.ts';
import { foldersForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';

const folders = foldersForEach();
const whole = complete({ modules: async () => [ledgersModule], features });
const progress = () => undefined;

test.each([0, 3])(
  'a restore after %d changes gives out no position again, and keeps all before',
  async (stored) => {
    const model = modelOf(await whole.modules());
    const use = async <T>(
      DATA_DIR: string,
      work: (database: Database) => Promise<T>,
    ) => Database.use(await optionsFor({ DATA_DIR }), model, work);
    const add = async (database: Database) => {
      const text = `insert into change
        (collection, item_id, action, actor, version, audience)
        values ('entries', 1, 'changed', 'service', 1, 'entries')
        returning id::text`;
      const [row] = await sql<[string]>(database, text);
      return BigInt(row?.[0] ?? 0);
    };
    const all = (database: Database) =>
      sql(database, 'select id::text from change order by id');
    const file = folders.file('backup');
    const options = await optionsFor({ DATA_DIR: folders.store });
    const { signal } = new AbortController();
    const kept = await use(folders.store, async (database) => {
      await database.migrate();
      for (let at = 0; at < stored; at += 1) await add(database);
      return all(database);
    });
    await backUp(file, options, model, { progress, signal });
    const lost = await use(folders.store, async (database) => {
      await add(database);
      return add(database);
    });
    const other = folders.file('other');
    const into = await optionsFor({ DATA_DIR: other });
    // A repetition finds the same.
    for (const _ of [1, 2]) await restore(file, into, model, progress);
    await use(other, async (database) => {
      expect(await all(database)).toEqual(kept);
      const next = await add(database);
      expect(next).toBeGreaterThan(lost);
      expect(await add(database)).toBe(next + 1n);
    });
  },
);
