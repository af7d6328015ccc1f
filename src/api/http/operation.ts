import type { FastifyRequest } from 'fastify';
import type { ObservedRoute } from '../../runtime/telemetry/observers.ts';

const known = new WeakMap<object, ObservedRoute>();

export function operationOf({ routeOptions: { config, url, schema } }: FastifyRequest): ObservedRoute {
  const found = known.get(config);
  if (found) return found;
  const { operationId: id } = (schema ?? {}) as { operationId?: string };
  const operation = { face: id ? 'rest' : url === '/graphql' ? 'graphql' : 'other', id } as const;
  known.set(config, operation);
  return operation;
}

/** HEAD is handled like GET (RFC 9110 section 9.3.2). */
export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
