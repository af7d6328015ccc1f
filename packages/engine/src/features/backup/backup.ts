import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Client } from 'pg';
import { assertFree, linesOf, writeWhole } from '../../commands/files.ts';
import {
  changeTable,
  Database,
  type DatabaseOptions,
  type Model,
} from '../../database/database.ts';
import {
  type EmbeddedStore,
  type OpenEmbeddedStore,
  storeIn,
} from '../embedded-store/store.ts';
import {
  appliedMigrations,
  assertCurrent,
  assertKnownMigrations,
  begin,
  type Contents,
  chunkSize,
  differingColumns,
  insertRows,
  lock,
  namesOf,
  type ReportRows,
  readTables,
  rowCountsOf,
  type StoredTable,
  setCounter,
  tableOf,
  tablesOf,
} from './tables.ts';

/**
 * A backup is lines of JSON: a head, the rows of each table in the head's
 * order, and an end with checksums.
 *
 *   {"format":"NAME backup 1","migrations":["2026_..."],"tables":[{"name":"book","columns":{...},"key":["id"]}]}
 *   {"id":1,"name":"Rex","category_id":1,"status":"available"}
 *   {"tables":[{"table":"book","rows":1,"sha256":"...","counter":"1","greatest":"1"}],"sha256":"..."}
 */
interface BackupHead {
  format: string;
  migrations: string[];
  tables: StoredTable[];
}

interface BackupEnd {
  tables: Contents[];
  /** Of all lines before this one. */
  sha256: string;
}

/** The first member of a backup. */
const backupFormat = ({ name }: DatabaseOptions) => `${name} backup 1`;

interface BackupOptions {
  /** Overwrites the file. */
  force?: boolean;
  /** Marks the store as moved, after its last row was read. */
  retire?: boolean;
  progress: ReportRows;
  signal: AbortSignal;
}

/** Changes that are drawn after a backup; a consumer may have seen them. */
const mostLost = 10n ** 9n;

/** After a restore no position means another change. */
function withoutLost(one: Contents) {
  if (one.table !== changeTable) return one;
  const counter = BigInt(one.counter ?? 0) + mostLost;
  return { ...one, counter: `${counter}` };
}

/** What the next process that opens a retired store is told. */
const moved =
  'This store was moved: set DATABASE_URL, or DATA_DIR, to its new place.';

/**
 * Writes the embedded store to a file, which gets its name when it is complete.
 * Other processes may use it meanwhile, unless it is retired.
 *
 * @param file `-` for standard output
 * @throws Error when there is no store, or the store is to be retired and another
 *   process has it open
 */
export async function backUp(
  file: string,
  options: DatabaseOptions,
  model: Model,
  { force = false, signal, ...others }: BackupOptions,
): Promise<{ bytes: number; tables: Contents[] }> {
  if (file !== '-') {
    assertFree(file, force);
    return writeWhole(file, async (handle) => {
      signal.throwIfAborted();
      const write = (text: string) => handle.appendFile(text);
      const written = writeStore(write, options, model, others);
      const aborted = once(signal, 'abort').then(() => {
        throw signal.reason;
      });
      const tables = await Promise.race([written, aborted]);
      const { size: bytes } = await handle.stat();
      return { bytes, tables };
    });
  }
  // Standard output gets a copy, so that a slow reader does not block the
  // store's only backend.
  const folder = await mkdtemp(join(tmpdir(), `${options.name}-`));
  try {
    const copy = join(folder, 'backup');
    const result = await backUp(copy, options, model, { signal, ...others });
    await pipeline(createReadStream(copy), process.stdout, {
      end: false,
      signal,
    });
    return result;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** @param write gets some whole lines at a time */
async function writeStore(
  write: (text: string) => Promise<unknown>,
  options: DatabaseOptions,
  model: Model,
  { progress, retire = false }: Pick<BackupOptions, 'progress' | 'retire'>,
) {
  const { folder } = options.ownStore as EmbeddedStore;
  const ownStore = storeIn(folder, { evenRetired: true });
  // Opening it would create one.
  if (!ownStore.exists())
    throw new Error(`There is no store in ${ownStore.name}.`);
  const hash = createHash('sha256');
  const writeLines = async (lines: string[]) => {
    const text = `${lines.join('\n')}\n`;
    hash.update(text);
    await write(text);
  };
  const tables = tablesOf(model);
  let contents: Contents[] = [];
  await Database.use({ ...options, ownStore }, model, async (database) => {
    const own = database.own as OpenEmbeddedStore;
    if (retire && !own.isOwner)
      throw new Error(
        `Another process has the store in ${folder} open. Stop it, and run this again.`,
      );
    await database.withSession(async (session) => {
      await begin(session, 'read only');
      const migrations = await assertCurrent(session, model, tables);
      const format = backupFormat(options);
      const head: BackupHead = { format, migrations, tables };
      await writeLines([JSON.stringify(head)]);
      const report: ReportRows = async (table, rows, lines) => {
        await writeLines(lines);
        progress(table, rows, lines);
      };
      const read = await readTables(session, tables, report);
      contents = read.map(withoutLost);
      if (!retire) return;
      own.retire(moved);
      // Until the store is closed, the transaction excludes other processes.
      await own.close();
    });
  });
  const end: BackupEnd = { tables: contents, sha256: hash.digest('hex') };
  await write(`${JSON.stringify(end)}\n`);
  return contents;
}

/** A backup is read twice. */
const linesIn = (path: string) => linesOf(createReadStream(path));

/**
 * Restores a backup into a new or empty store: applies the backup's migrations,
 * inserts and compares the rows in one transaction, and applies the later
 * migrations. A repetition finds the same rows, and changes nothing.
 *
 * @returns the tables, and the migrations that were applied after the restore
 * @throws Error when the store has other rows, or the file is incomplete or of
 *   a later release; no row is kept
 */
export async function restore(
  file: string,
  options: DatabaseOptions,
  model: Model,
  progress: ReportRows,
): Promise<{ tables: Contents[]; applied: string[] }> {
  const backup = await verify(file, options);
  const names = backup.head.migrations;
  assertKnownMigrations(names, model, file);
  const migrations = model.migrations.filter(({ name }) =>
    names.includes(name),
  );
  // The entities of then are unknown: those of today may have other columns.
  const atBackup = { entities: [], migrations };
  await Database.use(options, atBackup, async (database) => {
    await database.migrate();
    const work = (session: Client) =>
      load(session, backup, model, options, progress);
    await database.exclusively(() => database.withSession(work));
  });
  const applied = await Database.use(options, model, (database) =>
    database.migrate(),
  );
  return { tables: backup.end.tables, applied };
}

/**
 * Inserts the rows, unless the store has as many, and compares them with the
 * checksums.
 */
async function load(
  session: Client,
  backup: Backup,
  model: Model,
  options: DatabaseOptions,
  progress: ReportRows,
) {
  const { path, head, end } = backup;
  const refuse = (why: string) => {
    const { host, port, database } = session;
    const address = `${host}:${port}/${database} (DATABASE_URL)`;
    const store = options.ownStore?.name ?? address;
    throw new Error(`The store in ${store} ${why}. Restore into a new one.`);
  };
  await begin(session, 'read write');
  const applied = await appliedMigrations(session);
  if (applied.length > head.migrations.length)
    refuse('has had more migrations than the backup');
  const { unknown, missing } = await differingColumns(session, head.tables);
  // A PostgreSQL may have tables of others.
  const ours = namesOf(tablesOf(model));
  const ownUnknown = unknown.filter((one) => ours.includes(tableOf(one)));
  const misfits = [...ownUnknown, ...missing].sort().join(', ');
  if (misfits)
    throw changedError(path, `its tables and migrations differ in ${misfits}`);
  // Without a lock, because the store may be another one that is in use; and
  // counted first, because reading a large one would take long.
  const counts = await rowCountsOf(session, head.tables);
  const expected = end.tables.map(({ table, rows }) => ({ table, rows }));
  const filled = counts.filter(({ rows }) => rows > 0);
  if (filled.length === 0) await insert(session, backup, progress);
  else if (!isDeepStrictEqual(counts, expected)) {
    const described = filled.map(
      ({ table, rows }) => `${table} has ${rows} rows`,
    );
    refuse(`is not empty: ${described.join(', ')}`);
  }
  // The file may have changed since `verify`, an empty table before it was
  // locked, or a store that has had the backup before.
  const copy = await readTables(session, head.tables, progress);
  const different = copy.filter(
    (one, at) => !isDeepStrictEqual(one, end.tables[at]),
  );
  if (different.length > 0)
    throw new Error(
      `These tables differ from the backup: ${different.map(({ table }) => table).join(', ')}. Nothing was restored.`,
    );
  await session.query('commit');
}

async function insert(
  session: Client,
  { path, head, end }: Backup,
  progress: ReportRows,
) {
  const lines = linesIn(path);
  const keys = await lock(session, head.tables);
  // The head.
  await lines.next();
  for (const [at, table] of head.tables.entries()) {
    const { rows, counter } = end.tables[at] as Contents;
    let left = rows;
    while (left > 0) {
      const chunk = await take(lines, Math.min(left, chunkSize));
      await insertRows(session, table, chunk);
      left -= chunk.length;
      progress(table.name, rows - left, chunk);
    }
    if (counter !== null) await setCounter(session, table, counter);
  }
  await session.query(keys);
}

async function take(lines: AsyncIterator<Buffer | undefined>, count: number) {
  const taken: string[] = [];
  while (taken.length < count) taken.push(`${(await lines.next()).value}`);
  return taken;
}

/**
 * Compares the checksum of the file.
 *
 * @throws Error when the file is not a backup, or is incomplete or changed
 */
async function verify(path: string, options: DatabaseOptions) {
  const hash = createHash('sha256');
  let first: string | undefined;
  let last: Buffer | undefined;
  // The checksum is of all lines but the last, which has it.
  for await (const line of linesIn(path)) {
    if (last) hash.update(last).update('\n');
    first ??= `${line}`;
    last = line;
  }
  const head = parse<BackupHead>(first);
  const end = parse<BackupEnd>(last?.toString());
  const format = backupFormat(options);
  if (head?.format !== format)
    throw new Error(`${path} is not a file that begins with ${format}.`);
  if (!end?.sha256)
    throw new Error(`${path} is incomplete. Nothing was restored.`);
  if (end.sha256 !== hash.digest('hex'))
    throw changedError(path, 'its checksum is wrong');
  return { path, head, end };
}

type Backup = Awaited<ReturnType<typeof verify>>;

const changedError = (path: string, why: string) =>
  new Error(`${path} has been changed: ${why}. Nothing was restored.`);

function parse<T>(line = ''): (Partial<T> & T) | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
