import type { MikroORM, PostgreSqlConnection } from '@mikro-orm/postgresql';
import type { Pool, PoolClient } from 'pg';

/**
 * The pool of an ORM. MikroORM never gives back a connection that breaks in a transaction, because the rollback fails
 * before it would: the pool would be one short for good, and would wait for it when it is closed.
 */
export async function poolOf(orm: MikroORM): Promise<Pool> {
  const pool = await (orm.em.getConnection() as PostgreSqlConnection).getNativeClient();
  // Whoever does give it back has done so by the next turn of the event loop.
  pool.on('connect', (client) => {
    client.once('end', () => setImmediate(giveBack, client));
    // Whoever uses it is told by its statement.
    client.on('error', () => undefined);
  });
  return pool;
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
    // It was given back already.
  }
}
