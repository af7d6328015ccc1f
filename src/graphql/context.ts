import type { FastifyRequest } from 'fastify';
import type { Caller } from '../keys/key-lookup.ts';
import type { RequestCall } from '../rest/request-call.ts';

/** What resolvers know of the request. */
export interface GraphQLContext {
  readonly caller: Caller | null;
  readonly call: RequestCall;
  readonly request: FastifyRequest;
}

export async function createContext(request: FastifyRequest): Promise<GraphQLContext> {
  return { caller: request.caller, call: request.call, request };
}
