import type { FastifyInstance } from 'fastify';
import { StoreError, tryAgain } from '../../errors.ts';
import { withTimeout } from '../with-timeout.ts';

/** @returns members of the answer. @throws StoreError SERVICE_UNAVAILABLE when the process cannot serve */
export type CheckReadiness = () => Promise<object>;

export interface ReadinessOptions {
  app: { readonly isDraining: boolean };
  database: { assertReady(): Promise<void> };
  quota: { readonly isShared: boolean | undefined } | undefined;
  /** Undefined when one process is the service. */
  worker: { readonly state: { hasStarted: boolean; workersUp: string | null } | undefined } | undefined;
}

const timeout = 2000;

/** The database is reachable, writable and migrated, pending work makes progress, and the process is not draining. */
export function readiness({ app, database, quota, worker }: ReadinessOptions): CheckReadiness {
  // However many requests arrive, only one check of the database runs at a time.
  let current: Promise<void> | undefined;
  const checkOnce = () => {
    current ??= withTimeout(timeout, database.assertReady(), late).finally(() => {
      current = undefined;
    });
    return current;
  };
  return async () => {
    if (app.isDraining) throw new StoreError('SERVICE_UNAVAILABLE', 'The service is shutting down.');
    // Clients that came now would all stay with the first worker, on connections that are kept alive.
    if (worker && !worker.state?.hasStarted) throw tryAgain('The workers are starting.');
    await checkOnce();
    const workersUp = worker?.state?.workersUp;
    // Without Redis the service continues, and every node counts for itself; without a worker the others serve.
    return {
      ...(workersUp && { workers: workersUp }),
      ...(quota?.isShared === false && { quotas: 'per node: Redis cannot be used' }),
    };
  };
}

const late = () => new StoreError('SERVICE_UNAVAILABLE', `The database has not answered within ${timeout} ms.`);

export interface HealthOptions {
  check: CheckReadiness;
}

/**
 * `/livez`: the process runs. `/readyz`: it can serve. Neither needs a key; both respond within two seconds. They are
 * on the port for operators as well, where no queue of new clients delays them.
 */
export async function health(app: FastifyInstance, { check }: HealthOptions): Promise<void> {
  const options = { schema: { hide: true }, config: { public: true } };
  app.addHook('onRequest', async (_request, reply) => {
    reply.contentTag = null;
  });
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => ({ status: 'ok', ...(await check()) }));
}
