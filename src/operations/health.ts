import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';
import type { Quota } from '../quotas/quota.ts';

export interface HealthOptions {
  database: Database;
  quota: Quota | undefined;
}

/** `/livez`: the process runs. `/readyz`: it can serve, its database answers. Neither needs a key. */
export async function health(app: FastifyInstance, { database, quota }: HealthOptions): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => {
    await database.ping();
    // Without Redis the service serves on; every node counts for itself.
    return { status: 'ok', ...(quota?.isShared === false && { quotas: 'per node: Redis cannot be used' }) };
  });
}
