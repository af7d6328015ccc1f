import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';
import { StoreError } from '../errors.ts';
import type { Quota } from '../quotas/quota.ts';

export interface HealthOptions {
  database: Database;
  quota: Quota | undefined;
}

const patience = 2000;

/**
 * `/livez`: the process runs. `/readyz`: it can serve: the database is reachable, writable and migrated, pending work
 * makes progress, and the process is not about to end. Neither needs a key; both respond within two seconds.
 */
export async function health(app: FastifyInstance, { database, quota }: HealthOptions): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  // However many requests arrive, only one check of the database runs at a time.
  let check: Promise<void> | undefined;
  const checkOnce = () => {
    check ??= withinPatience(database.assertReady()).finally(() => {
      check = undefined;
    });
    return check;
  };

  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => {
    if (app.isDraining) throw new StoreError('SERVICE_UNAVAILABLE', 'The service is about to end.');
    await checkOnce();
    // Without Redis the service continues, and every node counts for itself.
    return { status: 'ok', ...(quota?.isShared === false && { quotas: 'per node: Redis cannot be used' }) };
  });
}

function withinPatience(work: Promise<void>): Promise<void> {
  let clock: NodeJS.Timeout;
  const late = new Promise<never>((_, reject) => {
    const error = new StoreError('SERVICE_UNAVAILABLE', `The database has not answered within ${patience} ms.`);
    clock = setTimeout(() => reject(error), patience);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(clock));
}
