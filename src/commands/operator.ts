import { DeprecationUsage } from '../access/deprecations/usage.ts';
import { ApiKeyService, actorOf } from '../access/keys/api-key.service.ts';
import { loadConfig } from '../config.ts';
import { modelOf } from '../mikro-orm.config.ts';
import { modules } from '../modules.ts';
import { preparedStore } from '../prepared-store.ts';
import { Database } from '../storage/database/database.ts';
import { distribute, type Layout } from '../storage/database/distribute.ts';
import type { DatabaseOptions, Log } from '../storage/database/options.ts';
import type { BackupWork } from './backup/backup.commands.ts';
import type { DataDesk } from './data/desk.ts';

/** What an operator's command works with. */
export interface Desk {
  keys: ApiKeyService;
  usage: DeprecationUsage;
  /** The migrations that have just been applied. */
  applied: string[];
}

/** @param always run migrations, even when the configuration leaves them to an operator. */
export function atDesk(work: (desk: Desk) => Promise<void>, always = false): Promise<void> {
  return atDatabase({}, always, (database, applied) => {
    // The words that have led here: `keys issue`.
    const actor = actorOf(process.argv.slice(2, 4).join(' '), process.env.SUDO_USER);
    return work({ keys: new ApiKeyService(database, actor), usage: new DeprecationUsage(database), applied });
  });
}

/** Works with the configured database, open and, unless that is left to an operator, migrated. */
async function atDatabase<T>(
  limits: Partial<DatabaseOptions>,
  always: boolean,
  work: (database: Database, applied: string[]) => Promise<T>,
): Promise<T> {
  const { database: options, migrateOnStart } = loadConfig(process.env);
  // Who asks for the migrations gets to see them.
  const prepared = migrateOnStart && !always ? preparedStore(options) : undefined;
  const database = await Database.open(
    { ...options, readUrls: undefined, prepared, log: waiting, ...limits },
    modelOf(modules),
  );
  try {
    await database.reach();
    return await work(database, always || migrateOnStart ? await database.migrate() : []);
  } finally {
    await database.close();
  }
}

/** @returns the names of the migrations that it has applied, even where the configuration leaves them to an operator */
export async function migrateDatabase(): Promise<string[]> {
  let done: string[] = [];
  await atDesk(async ({ applied }) => {
    done = applied;
  }, true);
  return done;
}

/** Migrates, and turns the tables into tables of a Citus cluster. @returns a line for each table */
export async function distributeTables(layout: Layout): Promise<string[]> {
  const { database: options } = loadConfig(process.env);
  if (!options.url)
    throw new Error('The embedded store is one node; distribute needs DATABASE_URL of a Citus cluster.');
  const model = modelOf(modules);
  // A table that moves to other nodes takes as long as its rows do.
  const database = await Database.open({ ...options, readUrls: undefined, statementTimeout: 0, log: waiting }, model);
  try {
    await database.reach();
    return await distribute(database, model, layout);
  } finally {
    await database.close();
  }
}

/** The work of `seed`, `export` and `import`. What they need is loaded now: other commands need none of it. */
export async function dataWork(): Promise<DataDesk> {
  const { DataDesk } = await import('./data/desk.ts');
  const { http } = loadConfig(process.env);
  const limits = { longestItem: http.bodyLimit };
  const collections = modules.flatMap(({ collections = [] }) => collections);
  // A statement handles a few thousand rows; a table that somebody else has locked may take its time.
  return new DataDesk(collections, limits, (work) => atDatabase({ statementTimeout: 600_000 }, false, work));
}

/** The work of `backup`, `restore` and `promote`. What they need is loaded now: other commands need none of it. */
export async function backupWork(): Promise<BackupWork> {
  const [{ backupTo, backupToStream }, { restoreFrom }, { promote }] = await Promise.all([
    import('./backup/backup.ts'),
    import('./backup/restore.ts'),
    import('./backup/promote.ts'),
  ]);
  const known = modelOf(modules).migrations.map(({ name }) => name);
  const embedded = (remedy: string) => {
    const { database } = loadConfig(process.env);
    if (database.url) throw new Error(`DATABASE_URL is set, and PostgreSQL has its own tools: ${remedy}`);
    return database;
  };
  return {
    backup(file, force, progress) {
      const options = embedded(`pg_dump --format=custom --file=${file} "$DATABASE_URL"`);
      return file === '-'
        ? backupToStream(process.stdout, options, progress)
        : backupTo(file, options, force, progress);
    },
    async restore(file, progress) {
      const options = embedded(`psql -v ON_ERROR_STOP=1 -f ${file} "$DATABASE_URL"`);
      const tables = await restoreFrom(file, { ...options, prepared: preparedStore(options) }, known, progress);
      return { tables, applied: await migrateDatabase() };
    },
    promote(url, progress) {
      const { database: source } = loadConfig({ ...process.env, ...withoutUrls });
      const { database: target } = loadConfig({ ...process.env, ...withoutUrls, DATABASE_URL: url });
      return promote(source, { ...target, url, log: waiting }, known, progress);
    },
  };
}

const withoutUrls = { DATABASE_URL: '', DATABASE_DIRECT_URL: '', DATABASE_READ_URLS: '' };

/** What a command waits for: standard output is for its results. */
const waiting: Log = {
  info: () => undefined,
  warn(fields, message) {
    const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    process.stderr.write(`animal-store: ${message} (${details.join(', ')})\n`);
  },
};
