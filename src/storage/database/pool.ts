import type { MikroORM, PostgreSqlConnection } from '@mikro-orm/postgresql';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import type { PoolState } from '../../runtime/telemetry/observers.ts';

/**
 * The connection pool of an ORM. MikroORM never releases a connection that breaks in a transaction, because the
 * rollback fails first (https://github.com/kysely-org/kysely/issues/1990). The pool would stay one connection short,
 * and closing it would wait for that connection.
 */
export async function poolOf(orm: MikroORM): Promise<Pool> {
  const pool = await (orm.em.getConnection() as PostgreSqlConnection).getNativeClient();
  // Code that does release it has done so by the next turn of the event loop.
  pool.on('connect', (client) => {
    client.once('end', () => setImmediate(giveBack, client));
    // The user of the connection gets the error from its statement.
    client.on('error', () => undefined);
  });
  return pool;
}

/** A pool without an ORM. */
export function poolWith(config: PoolConfig): Pool {
  const pool = new Pool(config);
  // A connection that breaks is replaced; whoever uses it gets the error.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

export function stateOfPool(pool: string, { totalCount, idleCount, waitingCount, options }: Pool): PoolState {
  const used = totalCount - idleCount;
  return { pool, idle: idleCount, used, max: options.max, pending: waitingCount };
}

/** MikroORM ends the pool only if one of its entity managers has used it. */
export async function endPool(orm: MikroORM, pool: Pool): Promise<void> {
  await orm.close(true);
  if (!pool.ending) await pool.end();
}

function giveBack(client: PoolClient): void {
  try {
    client.release(true);
  } catch {
    // It was released already.
  }
}
