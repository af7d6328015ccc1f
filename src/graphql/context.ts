import type { FastifyRequest } from 'fastify';
import type { Caller } from '../keys/key-lookup.ts';

/** What resolvers know of the request. */
export interface GraphQLContext {
  readonly caller: Caller | null;
  readonly request: FastifyRequest;
}

export async function createContext(request: FastifyRequest): Promise<GraphQLContext> {
  return { caller: request.caller, request };
}
