import type { FastifyRequest } from 'fastify';
import type { RequestCall } from '../http/request-call.ts';
import type { Caller } from '../keys/key-lookup.ts';

/** Values that replace what Apollo Server read from a request itself. */
export interface Reading {
  variables?: Record<string, unknown>;
  document?: string;
}

/** What resolvers know about the request. */
export interface GraphQLContext {
  readonly caller: Caller | null;
  readonly call: RequestCall;
  readonly request: FastifyRequest;
  readonly reading: Reading | undefined;
}
