import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../access/keys/authenticator.ts';
import type { StoreError } from '../../errors.ts';
import type { RequestCall } from '../http/request-call.ts';
import type { EventStream } from '../subscriptions/event-stream.ts';
import type { MediaType } from './media-types.ts';

/** Values that replace what Apollo Server read from a request itself. */
export interface Reading {
  variables?: Record<string, unknown>;
  document?: string;
}

/** Of a client that takes server-sent events. */
export interface Events {
  /** The last event that it has seen (WHATWG HTML, section 9.2.4): it wants what comes after. */
  readonly lastEventId: string | undefined;
  /** What its operation has opened, if that is a subscription. */
  stream?: EventStream;
  /** Why there is no stream now, when it had better try again later. */
  refusal?: StoreError;
}

/** What resolvers know about the request. */
export interface GraphQLContext {
  readonly caller: Caller | null;
  readonly call: RequestCall;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly reading: Reading | undefined;
  /** undefined when the client does not take events. */
  readonly events: Events | undefined;
  /** Of the answer. */
  readonly mediaType: MediaType;
}
