import type { Values } from '@animal-store/graphql-limits/cost';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import type { Call } from '../../call.ts';
import type { EventStream } from '../subscriptions/event-stream.ts';
import type { StreamFormat } from '../subscriptions/format.ts';

/** The parameters of a request. Null and empty ones are absent. */
export interface RequestParameters {
  query?: string;
  documentId?: unknown;
  operationName?: string;
  variables?: Values;
  extensions?: Values;
}

/** The formats that a client accepts. */
export interface Accepted {
  /** The media type of a result; undefined when it accepts none. */
  mediaType: string | undefined;
  /**
   * The format of a subscription; undefined when the client names none.
   * Wildcards do not count.
   */
  stream: StreamFormat | undefined;
  /** True when a single result must be a server-sent event, too. */
  prefersEvents: boolean;
}

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: Call;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
}

/** A subscription has a stream, or errors. */
export type Executed = ExecutionResult & { stream?: EventStream };

/** Executes one operation. */
export type Execute = (
  variables: Values,
  context: GraphQLContext,
) => Executed | Promise<Executed>;
