import type { Client } from 'pg';
import type { Database } from '../../storage/database/database.ts';
import type { DatabaseOptions, Model } from '../../storage/database/options.ts';
import { withModel } from '../context.ts';
import { assertStoreIn } from './backup.ts';
import {
  assertCurrent,
  type Contents,
  differing,
  fill,
  insertRows,
  inTransaction,
  lockAndCount,
  type OnRows,
  readTable,
  readTables,
  type StoredTable,
  tablesOf,
} from './tables.ts';

export interface Promotion {
  /** Host, port and database. */
  target: string;
  tables: Contents[];
  /** True when an earlier run had copied everything, and was interrupted before it could retire the store. */
  wasThere: boolean;
}

/**
 * Moves an embedded store to a PostgreSQL. The target is migrated, and gets all rows in one transaction, which is
 * committed when every table, read back from there, is the same. No other process can open the store meanwhile, and it
 * is retired at the end, so that no write is lost between the two.
 *
 * @param target with `url`, the PostgreSQL
 * @throws Error when another process has the store open, or the target is not empty: no row is kept there then
 */
export async function promote(
  source: DatabaseOptions,
  target: DatabaseOptions & { url: string },
  model: Model,
  progress: OnRows,
): Promise<Promotion> {
  assertStoreIn(source.dataDir);
  const tables = tablesOf(model);
  const alone = { ...source, embedded: { ...source.embedded, exclusive: true } };
  return withModel(alone, model, (store) =>
    store.withSession((from) =>
      inTransaction(from, 'read only', async () => {
        await assertCurrent(from, model, tables);
        return withModel(target, model, async (database) => {
          await database.migrate();
          const promotion = await copy(from, database, tables, progress);
          await assertHeld(from);
          store.embedded?.retire(`The data of ${source.dataDir} are in ${promotion.target} now: set DATABASE_URL.`);
          return promotion;
        });
      }),
    ),
  );
}

/** Copies the tables while no service that starts on the target changes them. */
function copy(from: Client, database: Database, tables: StoredTable[], progress: OnRows): Promise<Promotion> {
  const work = (to: Client, assertAlone: () => Promise<void>) =>
    inTransaction(to, 'read write', async () => {
      const target = `${to.host}:${to.port}/${to.database}`;
      await assertUnicode(to, target);
      const full = await lockAndCount(to, tables);
      if (full.length > 0) {
        const there = await readTables(to, tables, progress);
        if (differing(await readTables(from, tables, progress), there).length === 0)
          return { target, tables: there, wasThere: true };
        throw new Error(`${target} is not empty: ${full.join(', ')}. Promote to a new database.`);
      }
      const insert = (table: StoredTable) => readTable(from, table, progress, (lines) => insertRows(to, table, lines));
      const contents = await fill(to, tables, insert, progress);
      await assertAlone();
      await assertHeld(from);
      return { target, tables: contents, wasThere: false };
    });
  return database.exclusively((assertAlone) => database.withSession((to) => work(to, assertAlone)));
}

/** @throws Error when the transaction that reads the store has ended: the store may have changed since */
async function assertHeld(from: Client): Promise<void> {
  const { rows } = await from.query(`select current_setting('transaction_isolation') as isolation`);
  if (rows[0].isolation !== 'repeatable read') throw new Error('The store was not held until the end. Run this again.');
}

async function assertUnicode(to: Client, target: string): Promise<void> {
  const { rows } = await to.query(`select current_setting('server_encoding') as encoding`);
  if (rows[0].encoding === 'UTF8') return;
  throw new Error(`${target} is in ${rows[0].encoding}; the store needs a database in UTF8.`);
}
