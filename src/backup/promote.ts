import type { Client } from 'pg';
import {
  Database,
  type DatabaseOptions,
  type Model,
} from '../database/database.ts';
import { assertStoreIn } from './backup.ts';
import {
  assertCurrent,
  differing,
  fillAndCompare,
  insertRows,
  inTransaction,
  lockAndCount,
  type OnRows,
  readTable,
  readTables,
  type StoredTable,
  tablesOf,
} from './tables.ts';

/**
 * Moves an embedded store to a PostgreSQL server. It migrates the target and
 * inserts all rows in one transaction, which it commits when every table, read
 * back, is the same. No other process can open the store meanwhile, and the
 * store is retired at the end, so that no write is lost.
 *
 * @returns the target (host, port and database), and its tables; `wasThere`: an
 *   earlier run copied everything, but was interrupted before it retired the
 *   store
 * @throws Error when another process has the store open, or the target is not
 *   empty; the target keeps no row
 */
export async function promote(
  source: DatabaseOptions,
  target: DatabaseOptions & { url: string },
  model: Model,
  progress: OnRows,
) {
  assertStoreIn(source.dataDir);
  const tables = tablesOf(model);
  const alone = { ...source, exclusive: true };
  return Database.use(alone, model, (store) =>
    store.withSession((from) =>
      inTransaction(from, 'read only', async () => {
        await assertCurrent(from, model, tables);
        return Database.use(target, model, async (database) => {
          await database.migrate();
          const promotion = await copy(from, database, tables, progress);
          await assertHeld(from);
          store.embedded?.retire(
            `The data of ${source.dataDir} are in ${promotion.target} now: set DATABASE_URL.`,
          );
          return promotion;
        });
      }),
    ),
  );
}

/**
 * Copies the tables under the target's exclusive lock, so that no starting
 * service changes them.
 */
function copy(
  from: Client,
  database: Database,
  tables: StoredTable[],
  progress: OnRows,
) {
  const work = (to: Client, assertAlone: () => Promise<void>) =>
    inTransaction(to, 'read write', async () => {
      const target = `${to.host}:${to.port}/${to.database}`;
      await assertUnicode(to, target);
      const nonEmpty = await lockAndCount(to, tables);
      if (nonEmpty.length > 0) {
        const existing = await readTables(to, tables, progress);
        if (
          differing(await readTables(from, tables, progress), existing)
            .length === 0
        )
          return { target, tables: existing, wasThere: true };
        throw new Error(
          `${target} is not empty: ${nonEmpty.join(', ')}. Promote to a new database.`,
        );
      }
      const insert = (table: StoredTable) =>
        readTable(from, table, progress, (lines) =>
          insertRows(to, table, lines),
        );
      const contents = await fillAndCompare(to, tables, insert, progress);
      await assertAlone();
      await assertHeld(from);
      return { target, tables: contents, wasThere: false };
    });
  return database.exclusively((assertAlone) =>
    database.withSession((to) => work(to, assertAlone)),
  );
}

/**
 * @throws Error when the transaction that reads the store has ended, because
 *   the store may have changed since
 */
async function assertHeld(from: Client): Promise<void> {
  const { rows } = await from.query(
    `select current_setting('transaction_isolation') as isolation`,
  );
  if (rows[0].isolation !== 'repeatable read')
    throw new Error(
      'The transaction on the store ended early. Run this again.',
    );
}

async function assertUnicode(to: Client, target: string): Promise<void> {
  const { rows } = await to.query(
    `select current_setting('server_encoding') as encoding`,
  );
  if (rows[0].encoding === 'UTF8') return;
  throw new Error(
    `${target} is encoded in ${rows[0].encoding}; the service needs UTF8.`,
  );
}
