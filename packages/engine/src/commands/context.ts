import { DeprecatedCall } from '../access/deprecations/usage.ts';
import { ApiKey, KeyEvent } from '../access/keys/api-key.entity.ts';
import { type Config, loadConfig } from '../config/config.ts';
import {
  Database,
  type DatabaseOptions,
  type Model,
} from '../database/database.ts';
import { namingAllFaults } from '../errors.ts';
import {
  type ConfiguredStore,
  databaseOptions,
  type Service,
} from '../feature.ts';
import { AllowScopesOfModules } from '../migrations/2026_11_28_010000_allow_scopes_of_modules.ts';
import { notMigrated } from '../process/start-failure.ts';

/** The configured store, with the tables of all modules. */
export async function configuredStore(
  service: Service,
): Promise<ConfiguredStore> {
  const [{ modelOf }, modules] = await Promise.all([
    import('../process/model.ts'),
    service.modules(),
  ]);
  const config = loadConfig(
    process.env,
    [...modules, ...service.features],
    service,
  );
  const options = await optionsOf(service, config);
  return { config, options, model: modelOf(modules), modules };
}

/**
 * Applies pending migrations, even where MIGRATE_ON_START is false.
 *
 * @returns their names
 */
export async function migrateStore(service: Service) {
  const { options, model } = await configuredStore(service);
  const { migrate } = await import('../process/migrate.ts');
  return Database.use(options, model, (database) => migrate(database, service));
}

/**
 * Runs work on the configured database with the tables of all modules, migrated
 * unless MIGRATE_ON_START is false.
 */
export async function withDatabase<T>(
  service: Service,
  work: (database: Database, store: ConfiguredStore) => Promise<T>,
) {
  const store = await configuredStore(service);
  const { config, options, model } = store;
  const { migrate } = await import('../process/migrate.ts');
  await namingAllFaults(async () => undefined);
  // A command waits while a table is locked for minutes.
  return Database.use(
    { ...options, statementTimeout: 600_000 },
    model,
    async (database) => {
      if (config.migrateOnStart) await migrate(database, service);
      return work(database, store);
    },
  );
}

const keyTables: Model = {
  entities: [ApiKey, KeyEvent, DeprecatedCall],
  migrations: [
    {
      name: '2026_11_28_010000_allow_scopes_of_modules',
      class: AllowScopesOfModules,
    },
  ],
};

/**
 * Runs work on the key tables only. It loads no module, and migrates only when
 * these tables do not exist.
 */
export async function withKeyTables<T>(
  service: Service,
  work: (database: Database) => Promise<T>,
) {
  const config = loadConfig(process.env, service.features, service);
  const options = await optionsOf(service, config);
  const unmigrated = new Error(notMigrated);
  const migrated = () => withDatabase(service, work);
  const isNew = options.ownStore?.exists() === false;
  if (isNew && config.migrateOnStart) return migrated();
  return Database.use(options, keyTables, async (database) => {
    if ((await database.pending()).length > 0) throw unmigrated;
    return work(database);
  }).catch((error) => {
    const mayMigrate = error === unmigrated && config.migrateOnStart;
    if (!mayMigrate) throw error;
    return migrated();
  });
}

/** A command shows warnings. */
async function optionsOf(
  { features }: Service,
  config: Config,
): Promise<DatabaseOptions> {
  return {
    ...(await databaseOptions(features, config)),
    log: warningsOf(config.name),
  };
}

/**
 * Writes warnings to standard error, because standard output is for results.
 */
const warningsOf = (name: string) => ({
  info: () => undefined,
  warn(fields: object, message: string) {
    const details = Object.entries(fields).map(
      ([field, value]) => `${field}: ${value}`,
    );
    process.stderr.write(`${name}: ${message} (${details.join(', ')})\n`);
  },
});
