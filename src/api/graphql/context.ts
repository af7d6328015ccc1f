import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import type { Call } from '../../call.ts';
import type { EventStream } from '../subscriptions/event-stream.ts';
import type { Accepted } from './request.ts';

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: Call;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
  /** The operation, once it has begun. */
  operation?: {
    /** Names of the root fields in the schema, by response key. */
    readonly fields: ReadonlyMap<string, string>;
    readonly type: string;
    /** True for several mutations, which run one after another. */
    readonly isSeries: boolean;
  };
}

/** A subscription has a stream, or errors. */
export type Executed = ExecutionResult & { stream?: EventStream };

/** Executes one operation. */
export type Execute = (
  variables: Record<string, unknown>,
  context: GraphQLContext,
) => Executed | Promise<Executed>;
