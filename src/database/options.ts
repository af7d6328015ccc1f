import { Socket } from 'node:net';
import type { EntityName, MigrationObject } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import type { EmbeddedPostgres } from '../embedded/postgres.ts';

/** The tables of all modules, and the migrations that create them. */
export interface Model {
  entities: EntityName[];
  /** In the order in which they are applied. A released migration is never edited. */
  migrations: MigrationObject[];
}

export interface DatabaseOptions {
  /** postgres://...; undefined for the embedded store in `dataDir`. */
  url: string | undefined;
  dataDir: string;
  /** The folder that a new embedded store is copied from; it is unpacked and empty when undefined. */
  prepared?: string | undefined;
  /** Maximum number of connections. */
  poolMax: number;
  /** Timeout of a new connection, in milliseconds. */
  connectTimeout: number;
  /** Timeout of a statement in PostgreSQL, in milliseconds; 0 for none. The embedded store ignores it. */
  statementTimeout: number;
  /** Maximum size of a page, in bytes. A page holds as many items as fit, and at least one. */
  maxPageBytes: number;
  /** Called when the embedded store has died. */
  onLost?: (error: Error) => void;
}

/** MikroORM's options: the entities, the migrations and the pool. */
export function ormOptions(options: DatabaseOptions, { entities, migrations }: Model, embedded?: EmbeddedPostgres) {
  return defineConfig({
    entities,
    extensions: [Migrator],
    ...(embedded
      ? { host: embedded.host, user: embedded.user, dbName: embedded.database }
      : { clientUrl: withoutOurs(options.url) }),
    // The operator creates the database. Starting the service must not require the right to do so.
    ensureDatabase: false,
    pool: { max: options.poolMax },
    driverOptions: {
      ...(embedded ? {} : { connectionString: withoutOurs(options.url) }),
      application_name: 'animal-store',
      connectionTimeoutMillis: options.connectTimeout,
      // The timeout is always set, because the role may have its own. JIT is off, because PostgreSQL would compile the
      // batched list again at every execution: tens of milliseconds for a statement that takes one.
      ...(embedded
        ? {}
        : { options: `${optionsIn(options.url)} -c statement_timeout=${options.statementTimeout} -c jit=off`.trim() }),
      keepAlive: true,
      stream: () => socketThatMustAnswer(options.statementTimeout),
    },
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

/** The session options in a URL (`?options=-c%20search_path%3Dshop`). pg would let them replace ours. */
function optionsIn(url = ''): string {
  return URL.canParse(url) ? (new URL(url).searchParams.get('options') ?? '') : '';
}

/** Parameters that the service sets itself. In a URL they would take precedence. */
const ours = ['options', 'statement_timeout', 'query_timeout'];

function withoutOurs(url = ''): string {
  if (!URL.canParse(url) || !ours.some((name) => new URL(url).searchParams.has(name))) return url;
  const rest = new URL(url);
  for (const name of ours) rest.searchParams.delete(name);
  return rest.href;
}

/**
 * PostgreSQL cancels slow statements itself; this timeout is for a server or a network that has fallen silent. It is
 * set on the socket because pg's own `query_timeout` is a timer for every query: that costs as much as a small query,
 * and keeps the result from the garbage collector (`bench/README.md`).
 */
function socketThatMustAnswer(statementTimeout: number): Socket {
  const socket = new Socket();
  const silence = Object.assign(new Error('PostgreSQL does not answer any more'), { code: 'ETIMEDOUT' });
  if (statementTimeout > 0) socket.setTimeout(statementTimeout + 1000, () => socket.destroy(silence));
  return socket;
}
