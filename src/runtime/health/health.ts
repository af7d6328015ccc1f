import type { FastifyInstance } from 'fastify';
import { StoreError, tryAgain } from '../../errors.ts';
import { withTimeout } from '../with-timeout.ts';

export interface HealthOptions {
  database: { assertReady(): Promise<void> };
  quota: { readonly isShared: boolean | undefined } | undefined;
  /** undefined when one process is the service. */
  workers: { hasStarted: boolean; workersUp: string | undefined } | undefined;
}

const patience = 2000;

/**
 * `/livez`: the process runs. `/readyz`: it can serve: the database is reachable, writable and migrated, pending work
 * makes progress, and the process is not about to end. Neither needs a key; both respond within two seconds.
 */
export async function health(app: FastifyInstance, { database, quota, workers }: HealthOptions): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  // However many requests arrive, only one check of the database runs at a time.
  let check: Promise<void> | undefined;
  const checkOnce = () => {
    check ??= withTimeout(patience, database.assertReady(), late).finally(() => {
      check = undefined;
    });
    return check;
  };

  app.addHook('onRequest', async (_request, reply) => {
    reply.contentTag = null;
  });
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => {
    if (app.isDraining) throw new StoreError('SERVICE_UNAVAILABLE', 'The service is about to end.');
    // Clients that came now would all stay with the first worker, on connections that are kept alive.
    if (workers?.hasStarted === false) throw tryAgain('The workers are about to start.');
    await checkOnce();
    // Without Redis the service continues, and every node counts for itself; without a worker the others serve.
    return {
      status: 'ok',
      ...(workers?.workersUp && { workers: workers.workersUp }),
      ...(quota?.isShared === false && { quotas: 'per node: Redis cannot be used' }),
    };
  });
}

const late = () => new StoreError('SERVICE_UNAVAILABLE', `The database has not answered within ${patience} ms.`);
