import type { FastifyRequest } from 'fastify';

/** Which API a request is for, and its operation there. */
export interface Operation {
  /** `other`: health, documentation, and what does not exist. */
  face: 'rest' | 'graphql' | 'other';
  /** REST's operationId. */
  id: string | undefined;
}

const known = new WeakMap<object, Operation>();

export function operationOf({ routeOptions: { config, url, schema } }: FastifyRequest): Operation {
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
