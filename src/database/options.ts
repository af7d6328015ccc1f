import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import { migrations } from '../../migrations/index.ts';
import { ApiKey } from '../keys/api-key.entity.ts';
import { DeprecatedCall } from '../keys/deprecated-call.entity.ts';
import { PetEntity } from '../pets/pet.entity.ts';
import type { EmbeddedPostgres } from './embedded-postgres.ts';

export interface DatabaseOptions {
  /** postgres://...; the embedded store in `dataDir` when undefined. */
  url: string | undefined;
  dataDir: string;
  /** Connections at most. */
  poolMax: number;
  /** Milliseconds until a new connection must stand. */
  connectTimeout: number;
  /** Milliseconds until PostgreSQL gives up a statement. The embedded store ignores it. */
  statementTimeout: number;
  /** Called when the embedded store has died. */
  onLost?: (error: Error) => void;
}

/** MikroORM's options: the entities, the migrations and the pool. */
export function ormOptions(options: DatabaseOptions, embedded: EmbeddedPostgres | undefined) {
  return defineConfig({
    entities: [PetEntity, ApiKey, DeprecatedCall],
    extensions: [Migrator],
    ...(embedded
      ? { host: embedded.host, user: embedded.user, dbName: embedded.database }
      : { clientUrl: options.url ?? '' }),
    // The database is the operator's to create; a start must not depend on a right to do so.
    ensureDatabase: false,
    pool: { max: options.poolMax },
    driverOptions: {
      ...(embedded ? {} : { connectionString: options.url }),
      application_name: 'animal-store',
      connectionTimeoutMillis: options.connectTimeout,
      // PostgreSQL would compile the batched list anew at every execution: tens of milliseconds for what takes one.
      ...(embedded ? {} : { statement_timeout: options.statementTimeout, options: '-c jit=off' }),
      keepAlive: true,
    },
    migrations: { migrationsList: migrations, snapshot: false, silent: true },
    // A pooled connection that breaks is replaced, and who used it is told; MikroORM would print a line to standard output.
    logger: () => undefined,
    discovery: { warnWhenNoEntities: true },
  });
}
