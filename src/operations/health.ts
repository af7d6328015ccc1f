import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';

export interface HealthOptions {
  database: Database;
}

/** `/livez`: the process runs. `/readyz`: it can serve, its database answers. Neither needs a key. */
export async function health(app: FastifyInstance, { database }: HealthOptions): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => {
    await database.ping();
    return { status: 'ok' };
  });
}
