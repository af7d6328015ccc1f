import { Socket } from 'node:net';
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
  /** Milliseconds until PostgreSQL gives up a statement; 0: never. The embedded store ignores it. */
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
      : { clientUrl: withoutOurs(options.url) }),
    // The database is the operator's to create; a start must not depend on a right to do so.
    ensureDatabase: false,
    pool: { max: options.poolMax },
    driverOptions: {
      ...(embedded ? {} : { connectionString: withoutOurs(options.url) }),
      application_name: 'animal-store',
      connectionTimeoutMillis: options.connectTimeout,
      // Always said, since the role may have a time-out of its own. And without JIT: PostgreSQL would compile the batched
      // list anew at every execution, tens of milliseconds for what takes one.
      ...(embedded
        ? {}
        : { options: `${optionsIn(options.url)} -c statement_timeout=${options.statementTimeout} -c jit=off`.trim() }),
      keepAlive: true,
      stream: () => socketThatMustAnswer(options.statementTimeout),
    },
    migrations: { migrationsList: migrations, snapshot: false, silent: true },
    // A pooled connection that breaks is replaced, and who used it is told; MikroORM would print a line to standard output.
    logger: () => undefined,
    discovery: { warnWhenNoEntities: true },
  });
}

/** The session options in a URL (`?options=-c%20search_path%3Dshop`): pg would let them replace ours. */
function optionsIn(url = ''): string {
  return URL.canParse(url) ? (new URL(url).searchParams.get('options') ?? '') : '';
}

/** What the service says itself: in a URL it would count more. */
const ours = ['options', 'statement_timeout', 'query_timeout'];

function withoutOurs(url = ''): string {
  if (!URL.canParse(url) || !ours.some((name) => new URL(url).searchParams.has(name))) return url;
  const rest = new URL(url);
  for (const name of ours) rest.searchParams.delete(name);
  return rest.href;
}

/**
 * PostgreSQL gives up a statement by itself; this is for one that has fallen silent, or a network that has. A clock on
 * the socket, because pg's own `query_timeout` is a timer for every query: it costs as much as a small query does, and
 * keeps what it read from the garbage collector (`bench/README.md`).
 */
function socketThatMustAnswer(statementTimeout: number): Socket {
  const socket = new Socket();
  const silence = Object.assign(new Error('PostgreSQL does not answer any more'), { code: 'ETIMEDOUT' });
  if (statementTimeout > 0) socket.setTimeout(statementTimeout + 1000, () => socket.destroy(silence));
  return socket;
}
