import type { ClientBase } from 'pg';
import type { DatabaseOptions } from '../../storage/database/options.ts';
import type { Progress } from '../program.ts';
import { assertKnown } from './applied.ts';
import { readCatalogue, type StoredTable } from './catalogue.ts';
import { clear } from './empty.ts';
import { addRows, type Tally, talliesOf } from './rows.ts';
import { ScriptReader } from './script.reader.ts';
import { inTransaction, withStore } from './store.ts';
import { assertSame } from './tallies.ts';

/**
 * Restores a backup into an embedded store that is new or empty, in one transaction. It is verified before that is
 * committed: every table is read back and compared with what was backed up.
 *
 * @param known the migrations of this release; those that the backup lacks are applied afterwards, by whoever calls
 * @throws Error when the store is not empty, or the file is not whole or of a newer release: nothing is changed then
 */
export async function restoreFrom(
  file: string,
  options: DatabaseOptions,
  known: string[],
  progress: Progress,
): Promise<Tally[]> {
  const script = await ScriptReader.open(file);
  try {
    assertKnown(script.head.migrations, known, file);
    return await withStore(options, async ({ session, embedded }) => {
      // Whoever migrates a store must not meet it half restored.
      const readmit = await embedded.exclude(60_000);
      if (!readmit) throw new Error('Another process has been preparing the embedded store for a minute.');
      try {
        return await inTransaction(session, 'read write', () => load(session, script, options.dataDir, progress));
      } finally {
        readmit();
      }
    });
  } finally {
    await script.close();
  }
}

async function load(session: ClientBase, script: ScriptReader, dataDir: string, progress: Progress): Promise<Tally[]> {
  await clear(
    session,
    (full) => `The store in ${dataDir} (DATA_DIR) is not empty: ${full}. Restore into a new folder: DATA_DIR=...`,
  );
  let tables: StoredTable[] = [];
  let done = 0;
  let current = '';
  for await (const part of script.parts()) {
    if ('statement' in part) {
      await session.query(part.statement);
      tables = [];
      continue;
    }
    if (tables.length === 0) ({ tables } = await readCatalogue(session));
    const table = tables.find(({ name }) => name === part.table);
    if (!table) throw new Error(`The backup has rows of ${part.table}, and no such table.`);
    done = part.table === current ? done + part.rows.length : part.rows.length;
    current = part.table;
    await addRows(session, table, part.rows);
    progress(current, done);
  }
  const restored = await talliesOf(session, (await readCatalogue(session)).tables, progress);
  assertSame(script.end.tables, restored);
  return restored;
}
