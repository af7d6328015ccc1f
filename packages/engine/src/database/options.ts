import type { EventLog } from '@animal-store/log/incident';
import type {
  EntityName,
  EventSubscriber,
  MigrationObject,
} from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { Config } from '../config/config.ts';
import type { DatabaseObserver } from './batches.ts';
import { TenantKeys } from './tenant-keys.ts';
import { addTriggers } from './through.ts';

/** The tables of a service, and the migrations that create them. */
export interface Model {
  entities: EntityName[];
  /**
   * In the order in which they are applied. A released migration is never
   * edited.
   */
  migrations: MigrationObject[];
  /** The names of their modules in scopes. */
  modules?: ReadonlyMap<EntityName, string>;
}

export type DatabaseOptions = Config['database'] & {
  /** In place of `url`. */
  ownStore?: OwnStore;
  /** Called when the own store crashes. */
  onLost?: (error: Error) => void;
  /**
   * Where changes of the database's state are reported; nowhere when absent.
   */
  log?: EventLog;
  observers?: readonly DatabaseObserver[];
  /**
   * Members of a line in the log with SQL for an operator to run, because a
   * pooler drops our session settings. No line when absent.
   */
  advice?: object;
};

/** A store that the service keeps itself. */
export interface OwnStore {
  /** How messages name it. */
  readonly name: string;
  /** @returns false before the first `open` */
  exists(): boolean;
  open(options: DatabaseOptions): Promise<OpenStore>;
}

export interface OpenStore {
  /** How to open sessions with it. */
  readonly options: Partial<DatabaseOptions>;
  /** Runs work that only one process at a time may do. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Repeats work that fails while the store changes owner. */
  retryInTakeover<T>(work: () => Promise<T>): Promise<T>;
  /** Stops it from keeping the process alive. */
  closeAtEnd(): void;
  close(): Promise<void>;
}

/** What an entity of a creation lacks is null, as in its row. */
const absentIsNull: EventSubscriber = {
  beforeCreate({ entity, meta }) {
    for (const { name, nullable } of meta.props)
      if (nullable) entity[name] ??= null;
  },
};

export function ormOptions(
  { url, poolMax }: Pick<DatabaseOptions, 'url' | 'poolMax'>,
  { entities, migrations }: Model,
  connection: ClientConfig,
) {
  return defineConfig({
    entities,
    extensions: [Migrator, TenantKeys],
    subscribers: [absentIsNull],
    // While a backup is restored, its tables are not those of the entities.
    discovery: {
      warnWhenNoEntities: false,
      afterDiscovered: addTriggers,
    },
    clientUrl: url ?? '',
    // The operator creates the database. Starting the service must not require
    // the right to do so.
    ensureDatabase: false,
    pool: { max: poolMax },
    driverOptions: connection,
    // Citus adds its own views, which a generated migration would drop.
    schemaGenerator: { skipViews: [/^citus_/] },
    migrations: {
      migrationsList: migrations,
      path: 'migrations',
      silent: true,
      // One transaction for all would hold the first migration's locks until
      // the last is done.
      allOrNothing: false,
      // How `npm run migration:create` writes a migration. They are applied in
      // the order of their names, so all names spell the date alike.
      fileName: (timestamp, name = 'change') =>
        `${timestamp.replace(/^(\d{4})(\d\d)(\d\d)/, '$1_$2_$3_')}_${name}`,
      snapshotName: '.snapshot',
      // Only a new migration writes the snapshot.
      snapshotOnMigrate: false,
    },
    // MikroORM would print a line to stdout when a pooled connection breaks.
    // The statement reports that error anyway.
    logger: () => undefined,
  });
}
