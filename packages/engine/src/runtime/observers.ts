import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLFormattedError } from 'graphql';
import type { Call } from '../call.ts';
import type { DatabaseObserver } from '../database/database.ts';

/**
 * What a part of the service observes: its log, metrics and traces. Every
 * observer sees every event once, returns quickly and does not throw.
 */
export interface Observers {
  request: RequestObserver;
  operation: OperationObserver;
  database: DatabaseObserver;
  key: KeyObserver;
}

/** The observers of one kind. */
export function observersOf<Kind extends keyof Observers>(
  parts: ReadonlyArray<{ observers?: Partial<Observers> }>,
  kind: Kind,
): Observers[Kind][] {
  return parts.flatMap(({ observers }) => observers?.[kind] ?? []);
}

export interface RequestObserver {
  /** A request has arrived. Its route is known, its caller is not. */
  began?(request: FastifyRequest): void;
  /**
   * The operating system has accepted the whole response, or the connection is
   * closed.
   */
  ended(request: FastifyRequest, reply: FastifyReply, end: RequestEnd): void;
}

export interface RequestEnd {
  /** Milliseconds since the arrival. */
  milliseconds: number;
  /** False when the client disconnected before the response was complete. */
  isAnswered: boolean;
  /**
   * Which API the request was for. `other`: health, documentation, unknown
   * paths.
   */
  api: 'rest' | 'graphql' | 'other';
  /** The operationId in REST. */
  id: string | undefined;
}

/**
 * Observes GraphQL operations, also compiled ones, which never reach
 * graphql-js's `execute`.
 */
export interface OperationObserver {
  began?(operation: ObservedOperation, call: Call): void;
  /** Its response is about to be sent. */
  ended(
    operation: ObservedOperation,
    call: Call,
    errors: readonly GraphQLFormattedError[] | undefined,
  ): void;
}

/** An operation of a valid document. */
interface ObservedOperation {
  type: 'query' | 'mutation' | 'subscription';
  name: string | undefined;
  /** Whether the operator has registered its document, and so its name. */
  isTrusted: boolean;
  /**
   * Names of its root fields in the schema, by response key. The same object
   * for each request with one document.
   */
  fields: ReadonlyMap<string, string>;
}

export interface KeyObserver {
  lookedUp(result: 'known' | 'unknown' | 'failed'): void;
  /** A deprecated operation was called with the key of this name. */
  deprecatedCall(operation: string, key: string): void;
}
