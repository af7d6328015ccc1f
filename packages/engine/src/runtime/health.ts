import type { FastifyInstance } from 'fastify';
import { withTimeout } from '../database/with-timeout.ts';
import { StoreError } from '../errors.ts';

/**
 * @returns members of the response
 * @throws StoreError SERVICE_UNAVAILABLE when the process cannot serve
 */
export type CheckReadiness = () => Promise<object>;

/** What the service may use beside its database. */
export type Dependencies = Record<string, { readonly isUp: boolean }>;

interface ReadinessOptions {
  app: { readonly isDraining: boolean };
  database: { assertReady(): Promise<void> };
  dependencies: Dependencies;
  /**
   * Members of the response.
   *
   * @throws StoreError when they cannot serve
   */
  others: (() => object) | undefined;
}

const checkTimeout = 2000;

/**
 * Checks that the database and others are ready, and that the process is not
 * draining.
 */
export function readiness({
  app,
  database,
  dependencies,
  others,
}: ReadinessOptions): CheckReadiness {
  // Concurrent requests share one check of the database.
  let current: Promise<void> | undefined;
  const checkOnce = () => {
    current ??= withTimeout(
      checkTimeout,
      database.assertReady(),
      lateCheck,
    ).finally(() => {
      current = undefined;
    });
    return current;
  };
  return async () => {
    if (app.isDraining)
      throw new StoreError(
        'SERVICE_UNAVAILABLE',
        'The service is shutting down.',
      );
    const members = others?.();
    await checkOnce();
    // Without them the service works, with limits.
    const away = Object.entries(dependencies).filter(([, one]) => !one.isUp);
    return {
      ...members,
      ...Object.fromEntries(away.map(([name]) => [name, 'cannot be used'])),
    };
  };
}

const lateCheck = () =>
  new StoreError(
    'SERVICE_UNAVAILABLE',
    `The database has not answered within ${checkTimeout} ms.`,
  );

/**
 * `/livez`: the process runs. `/readyz`: it can serve. Neither needs a key;
 * both respond within two seconds. The operations port serves them as well,
 * where no queue of clients delays them.
 */
export async function health(
  app: FastifyInstance,
  { check }: { check: CheckReadiness },
) {
  const options = { schema: { hide: true }, config: { public: true } };
  app.addHook('onRequest', async (_request, reply) => {
    reply.contentTag = null;
  });
  app.get('/livez', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async () => ({
    status: 'ok',
    ...(await check()),
  }));
}
