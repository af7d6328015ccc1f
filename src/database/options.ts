import type { EmbeddedOptions } from '@animal-store/pglite-server';
import type { EntityName, MigrationObject } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { DatabaseObserver } from './batches.ts';

/** The tables of a service, and the migrations that create them. */
export interface Model {
  entities: EntityName[];
  /** In the order in which they are applied. A released migration is never edited. */
  migrations: MigrationObject[];
}

/** The part of a log that the database uses. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface DatabaseOptions {
  /**
   * The `application_name` of sessions, and the name of the lock for migrations: the same in all releases of a service.
   */
  name: string;
  /** postgres://...; undefined for the embedded store in `dataDir`. */
  url: string | undefined;
  /** The same database past a pooler, for migrations; `url` when absent. */
  directUrl?: string | undefined;
  /** False opens no connection before the first statement, for work that only needs the model. */
  connects?: boolean;
  dataDir: string;
  /** The prepared folder to copy for a new embedded store; a new store starts empty when undefined. */
  prepared?: string | undefined;
  /** Maximum number of connections. */
  poolMax: number;
  /** Timeout of a new connection, in milliseconds. */
  connectTimeout: number;
  /** Timeout of a statement in PostgreSQL, in milliseconds; 0 for none. The embedded store ignores it. */
  statementTimeout: number;
  /** Whether statements are prepared once per session; `auto` when they survive. */
  preparedStatements?: 'auto' | 'true' | 'false';
  /** PostgreSQL servers for reads; `url` when absent or when none is usable. */
  readUrls?: string[] | undefined;
  /** Maximum replication lag of a usable replica, in milliseconds. */
  readMaxLag?: number;
  /** Where changes of the database's state are reported; nowhere when absent. */
  log?: Log;
  /** Observers of round trips to the database. */
  observers?: readonly DatabaseObserver[];
  /** How the embedded store is opened. */
  embedded?: Pick<EmbeddedOptions, 'evenRetired' | 'exclusive' | 'maxSilence'>;
  /** Called when the embedded store crashes. */
  onLost?: (error: Error) => void;
}

/** MikroORM's options: the entities, the migrations and the pool. */
export function ormOptions(
  { url, poolMax }: Pick<DatabaseOptions, 'url' | 'poolMax'>,
  { entities, migrations }: Model,
  connection: ClientConfig,
) {
  return defineConfig({
    entities,
    extensions: [Migrator],
    ...(url ? { clientUrl: url } : { host: connection.host, user: connection.user, dbName: connection.database }),
    // The operator creates the database. Starting the service must not require the right to do so.
    ensureDatabase: false,
    pool: { max: poolMax },
    driverOptions: connection,
    // Citus adds its own views, which a generated migration would drop.
    schemaGenerator: { skipViews: [/^citus_/] },
    migrations: { migrationsList: migrations, path: 'migrations', silent: true, ...written },
    // MikroORM would print a line to stdout when a pooled connection breaks. The statement reports that error anyway.
    logger: () => undefined,
    discovery: { warnWhenNoEntities: true },
  });
}

/** How `npm run migration:create` writes a migration. */
const written = {
  emit: 'ts' as const,
  // Migrations are applied in the order of their names, so all names spell the date alike.
  fileName: (timestamp: string, name = 'change') => `${timestamp.replace(/^(\d{4})(\d\d)(\d\d)/, '$1_$2_$3_')}_${name}`,
  snapshotName: '.snapshot',
  // Only a new migration writes the snapshot.
  snapshotOnMigrate: false,
};
