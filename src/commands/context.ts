import { Database, type DatabaseOptions, type Model } from '../../packages/postgres/src/database.ts';
import { isUnmigrated } from '../../packages/postgres/src/errors.ts';
import { DeprecatedCall } from '../access/deprecations/usage.ts';
import { ApiKey, KeyEvent } from '../access/keys/api-key.entity.ts';
import { type Config, loadConfig } from '../config.ts';
import { preparedStore } from '../prepared-store.ts';

/** The configuration and the database of a command. */
export interface CommandContext {
  config: Config;
  /** Reachable and, unless MIGRATE_ON_START is false, migrated. */
  database: Database;
  /** The names of the migrations that this command applied. */
  applied: string[];
}

interface ContextOptions {
  /** Migrates even where MIGRATE_ON_START is false. */
  migrate?: 'always';
  /** Overrides the configuration. */
  limits?: Partial<DatabaseOptions>;
}

/** The configured store, with the tables of all modules. @param env overrides variables */
export async function configuredStore(env: Record<string, string> = {}) {
  const [{ modelOf }, { modules }] = await Promise.all([import('../mikro-orm.config.ts'), import('../modules.ts')]);
  const config = loadConfig({ ...process.env, ...env });
  const options: DatabaseOptions = { ...config.database, prepared: preparedStore(config.database) };
  return { config, options, model: modelOf(modules) };
}

/** Runs work on the configured database with the tables of all modules. */
export async function withDatabase<T>(
  work: (context: CommandContext) => Promise<T>,
  { migrate, limits }: ContextOptions = {},
): Promise<T> {
  const { config, options, model } = await configuredStore();
  const migrates = config.migrateOnStart || migrate === 'always';
  // `migrate` lists the applied migrations, so it does not copy the prepared store, which has them already.
  const prepared = config.migrateOnStart && migrate !== 'always' ? options.prepared : undefined;
  return withModel({ ...options, ...limits, prepared }, model, async (database) =>
    work({ config, database, applied: migrates ? await database.migrate() : [] }),
  );
}

const keyTables: Model = { entities: [ApiKey, KeyEvent, DeprecatedCall], migrations: [] };

/** Runs work on the key tables only. It loads no module, and migrates only when these tables do not exist. */
export async function withKeyTables<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const { database: options, migrateOnStart } = loadConfig(process.env);
  const run = () => withModel({ ...options, prepared: preparedStore(options) }, keyTables, work);
  return run().catch(async (error) => {
    if (!migrateOnStart || !isUnmigrated(error)) throw error;
    await withDatabase(async () => undefined);
    return run();
  });
}

/** Runs work on a database, and closes it afterwards. */
export async function withModel<T>(
  options: DatabaseOptions,
  model: Model,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await Database.open({ log: warnings, ...options, readUrls: undefined }, model);
  try {
    await database.reach();
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Writes warnings to standard error, because standard output is for results. */
const warnings = {
  info: () => undefined,
  warn(fields: object, message: string) {
    const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    process.stderr.write(`animal-store: ${message} (${details.join(', ')})\n`);
  },
};
