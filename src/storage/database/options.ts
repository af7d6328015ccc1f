import type { EntityName, MigrationObject } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { EmbeddedOptions, EmbeddedPostgres } from '../../../packages/embedded-postgres/src/postgres.ts';
import type { DatabaseObserver } from '../../runtime/telemetry/observers.ts';

export type { EmbeddedPostgres };

/** The tables of all modules, and the migrations that create them. */
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
  /** postgres://...; undefined for the embedded store in `dataDir`. */
  url: string | undefined;
  /** The same database past a pooler, for migrations; `url` when absent. */
  directUrl?: string | undefined;
  /** False to open no connection before the first statement: for work that needs the model only. */
  connects?: boolean;
  dataDir: string;
  /** The folder that a new embedded store is copied from; it is unpacked and empty when undefined. */
  prepared?: string | undefined;
  /** Maximum number of connections. */
  poolMax: number;
  /** Timeout of a new connection, in milliseconds. */
  connectTimeout: number;
  /** Timeout of a statement in PostgreSQL, in milliseconds; 0 for none. The embedded store ignores it. */
  statementTimeout: number;
  /** Whether statements are prepared once per session; `auto` when they survive. */
  preparedStatements?: 'auto' | 'true' | 'false';
  /** PostgreSQLs that answer reads; the one in `url` when absent or none can. */
  readUrls?: string[] | undefined;
  /** How far a replica may be behind, in milliseconds. */
  readMaxLag?: number;
  /** Where changes of the database's state are reported; nowhere when absent. */
  log?: Log;
  /** Observers of what is sent to the database. */
  observers?: readonly DatabaseObserver[];
  /** How the embedded store is opened. */
  embedded?: Pick<EmbeddedOptions, 'evenRetired' | 'exclusive' | 'maxSilence'>;
  /** Called when the embedded store has died. */
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
    // Citus puts its own views beside the tables: a new migration would drop them.
    schemaGenerator: { skipViews: [/^citus_/] },
    migrations: { migrationsList: migrations, path: 'migrations', silent: true, ...written },
    // A broken pooled connection is replaced and its user gets the error. MikroORM would print a line to stdout.
    logger: () => undefined,
    discovery: { warnWhenNoEntities: true },
  });
}

/** How `npm run migration:create` writes a migration. */
const written = {
  emit: 'ts' as const,
  // Migrations are applied in the order of their names, so the date is written as in the existing names.
  fileName: (timestamp: string, name = 'change') => `${timestamp.replace(/^(\d{4})(\d\d)(\d\d)/, '$1_$2_$3_')}_${name}`,
  snapshotName: '.snapshot',
  // The snapshot is written together with a new migration, and by nothing else.
  snapshotOnMigrate: false,
};
