import { Client, type ClientBase, type ClientConfig } from 'pg';
import { assertInUse } from '../../../packages/embedded-postgres/src/lock.ts';
import { exclusivelyOn, withoutLimits } from '../../storage/database/exclusive.ts';
import type { DatabaseOptions } from '../../storage/database/options.ts';
import { findSessions } from '../../storage/database/sessions.ts';
import type { Progress } from '../program.ts';
import { appliedMigrations, assertKnown } from './applied.ts';
import { type Catalogue, readCatalogue } from './catalogue.ts';
import { definitionOf } from './definition.ts';
import { clear } from './empty.ts';
import { addRows, readTable, type Tally, talliesOf } from './rows.ts';
import { assertStoreIn, begin, inTransaction, withStore } from './store.ts';
import { assertSame, differing } from './tallies.ts';

export interface Promotion {
  /** Host, port and database. */
  target: string;
  tables: Tally[];
  /** True when an earlier run had copied all, and was interrupted before it could say so. */
  wasThere: boolean;
}

/** How long (ms) the target may be silent: an index of many rows takes its time. */
const patience = 600_000;

/**
 * Makes an embedded store a PostgreSQL. The target gets everything in one transaction, which is committed when every
 * table, read back from there, is the same: a run that is interrupted leaves nothing, or all of it, which the next run
 * recognises. The store is held meanwhile, and retired at the end, so that no write is lost between the two.
 *
 * @param target with `url`, the PostgreSQL
 * @param known the migrations of this release
 * @throws Error when somebody has the store open, or the target is not empty: nothing is changed then
 */
export async function promote(
  source: DatabaseOptions,
  target: DatabaseOptions & { url: string },
  known: string[],
  progress: Progress,
): Promise<Promotion> {
  assertStoreIn(source.dataDir);
  return withStore(
    source,
    async ({ session, embedded }) => {
      const { config } = await findSessions(target.url, { ...target, statementTimeout: patience });
      const name = `${config.host}:${config.port ?? 5432}/${config.database}`;
      // No service that starts there meanwhile makes tables of its own.
      return exclusivelyOn({ ...config, stream: undefined }, target.log, async (assertHeld) => {
        await begin(session, 'read only');
        const copied = await onTarget(config, (to) => fill(session, to, { source, name, known, progress, assertHeld }));
        await assertOpen(session);
        embedded.retire(`The data of ${source.dataDir} are in ${name} now: set DATABASE_URL.`);
        // Not a commit: whoever has waited for the store would be served, and what it writes be lost.
        await embedded.close();
        return copied;
      });
    },
    { evenRetired: true, exclusive: true },
  );
}

/** Fails when the transaction that reads the store has ended, and the store may have changed since. */
async function assertOpen(session: ClientBase): Promise<void> {
  const { rows } = await session.query<{ isolation: string }>(
    `select current_setting('transaction_isolation') as isolation`,
  );
  if (rows[0]?.isolation !== 'repeatable read')
    throw new Error('The store was not held until the end. Run this again.');
}

async function onTarget<T>(config: ClientConfig, work: (to: ClientBase) => Promise<T>): Promise<T> {
  const to = new Client(config);
  to.on('error', () => undefined);
  try {
    await to.connect();
    return await inTransaction(to, 'read write', async () => {
      await to.query(withoutLimits);
      return work(to);
    });
  } finally {
    await to.end();
  }
}

interface Filling {
  source: DatabaseOptions;
  name: string;
  known: string[];
  progress: Progress;
  assertHeld: () => Promise<void>;
}

async function fill(
  from: ClientBase,
  to: ClientBase,
  { source, name, known, progress, assertHeld }: Filling,
): Promise<Promotion> {
  await assertUnicode(to, name);
  const catalogue = await readCatalogue(from);
  assertKnown(await appliedMigrations(from, catalogue), known, `The store in ${source.dataDir}`);
  const there = await copyIn(from, to, catalogue, progress);
  if (there) return { target: name, tables: there, wasThere: true };
  assertInUse(source.dataDir);
  const ours = new Set(catalogue.tables.map((table) => table.name));
  await clear(to, (full) => `${name} is not empty: ${full}. Promote to a new database.`, ours);
  const { tables, rest } = definitionOf(catalogue);
  for (const statement of tables) await to.query(statement);
  const tallies: Tally[] = [];
  for (const table of catalogue.tables) {
    const tell = (rows: number) => progress(table.name, rows);
    tallies.push(await readTable(from, table, tell, (rows) => addRows(to, table, rows)));
  }
  for (const statement of rest) await to.query(statement);
  assertSame(tallies, await talliesOf(to, catalogue.tables, progress));
  if (outline(await readCatalogue(to)) !== outline(catalogue))
    throw new Error(`The counters of ${name} are not those of the store.`);
  await assertHeld();
  await assertOpen(from);
  return { target: name, tables: tallies, wasThere: false };
}

async function assertUnicode(to: ClientBase, name: string): Promise<void> {
  const { rows } = await to.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`);
  if (rows[0]?.encoding !== 'UTF8')
    throw new Error(`${name} is in ${rows[0]?.encoding}; the store needs a database in UTF8.`);
}

/** What an earlier run has left in the target: the same tables, rows and counters. @returns undefined for anything else */
async function copyIn(
  from: ClientBase,
  to: ClientBase,
  catalogue: Catalogue,
  progress: Progress,
): Promise<Tally[] | undefined> {
  const { tables } = catalogue;
  if (outline(await readCatalogue(to)) !== outline(catalogue)) return undefined;
  const copy = await talliesOf(to, tables, progress);
  return differing(await talliesOf(from, tables, progress), copy).length === 0 ? copy : undefined;
}

/** What is the same in a copy, whatever the versions of the two PostgreSQLs. */
function outline({ tables, sequences }: Catalogue): string {
  const columns = tables.map((table) => [table.name, table.columns.map(({ name, type }) => `${name} ${type}`)]);
  return JSON.stringify([columns, sequences.map(({ name, value, isCalled }) => [name, value, isCalled])]);
}
