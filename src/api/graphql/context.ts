import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import type { Call } from '../../call.ts';
import type { Accepted } from './request.ts';

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: Call;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
  /** Names of the root fields in the schema, by response key. */
  fields?: ReadonlyMap<string, string>;
}

/** Executes one operation. */
export type Execute = (
  variables: Record<string, unknown>,
  context: GraphQLContext,
) => ExecutionResult | Promise<ExecutionResult>;
