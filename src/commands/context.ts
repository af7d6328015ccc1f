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
  const options = optionsOf(config);
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
  return Database.use({ ...options, ...limits, prepared }, model, async (database) =>
    work({ config, database, applied: migrates ? await database.migrate() : [] }),
  );
}

const keyTables: Model = { entities: [ApiKey, KeyEvent, DeprecatedCall], migrations: [] };

/** Runs work on the key tables only. It loads no module, and migrates only when these tables do not exist. */
export async function withKeyTables<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env);
  const run = () => Database.use(optionsOf(config), keyTables, work);
  return run().catch(async (error) => {
    if (!config.migrateOnStart || !isUnmigrated(error)) throw error;
    await withDatabase(async () => undefined);
    return run();
  });
}

/** A command reads from the primary, and shows warnings. */
function optionsOf({ database }: Config): DatabaseOptions {
  return { ...database, log: warnings, readUrls: undefined, prepared: preparedStore(database) };
}

/** Writes warnings to standard error, because standard output is for results. */
const warnings = {
  info: () => undefined,
  warn(fields: object, message: string) {
    const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    process.stderr.write(`animal-store: ${message} (${details.join(', ')})\n`);
  },
};
