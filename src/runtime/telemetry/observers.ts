import type { Server } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { Deadline, RequestTrace } from '../../deadline.ts';

/**
 * What the service reports to its log, metrics and traces. Every observer sees every event once, returns quickly and
 * does not throw. An empty list costs nothing.
 */
export interface Observers {
  requests: RequestObserver[];
  operations: OperationObserver[];
  databases: DatabaseObserver[];
  keys?: KeyObserver;
  /** The service has been assembled. */
  onBuilt?(app: ObservedApp, database: ObservedDatabase): void;
}

/** Observes requests of both APIs. */
export interface RequestObserver {
  /** A request has arrived. Its route is known, its caller is not yet. */
  began?(request: FastifyRequest, call: ObservedCall): void;
  /** The system has taken the whole response, or the connection is closed. */
  ended(request: FastifyRequest, reply: FastifyReply, end: RequestEnd): void;
}

export interface RequestEnd {
  /** Milliseconds since the arrival. */
  milliseconds: number;
  /** False when the client disconnected before it had the whole response. */
  isAnswered: boolean;
  call: ObservedCall;
  /** The owner of the key; null without a valid key. */
  caller: { id: number | bigint; hint?: string | undefined } | null;
  route: ObservedRoute;
}

/** Which API a request was for, and its operation there. */
export interface ObservedRoute {
  /** `other`: health, documentation, unknown paths. */
  face: 'rest' | 'graphql' | 'other';
  /** The operationId in REST. */
  id: string | undefined;
}

/** What becomes known of a request while it is processed. */
export interface ObservedCall extends Deadline {
  /** When the request arrived (`performance.now()`). */
  readonly arrived: number;
  /** After how long (ms) its response began to stream; undefined for a response with an end of its own. */
  readonly streamedAfter: number | undefined;
  /** How many items were read or written. */
  readonly items: number;
  /** The server that answered the last read, where there are several. */
  readonly node: string | undefined;
  /** How long (ms) its inputs waited until their batches left; undefined when it needed no database. */
  readonly waited: number | undefined;
  /** The size of its largest batch. */
  readonly batch: number | undefined;
  /** The GraphQL operation: the name that the client gave it, and its root fields, each once. */
  readonly operation: { name: string | undefined; fields: readonly string[] | undefined } | undefined;
  /** The error code of the response; the first of several. */
  readonly code: string | undefined;
  /** The trace that the request is part of; undefined when none is kept. */
  readonly traceId: string | undefined;
  /** Set by observers: when the GraphQL operation began (`performance.now()`). */
  operationBegan: number | undefined;
  /** Set by observers. */
  trace: RequestTrace | undefined;
}

/**
 * Observes GraphQL operations. Compiled operations never reach graphql-js's `execute`, so this is the place that sees
 * all of them.
 */
export interface OperationObserver {
  began(operation: ObservedOperation): void;
  /** Its response is about to be sent. An operation that its method forbids ends without having begun. */
  ended(operation: ObservedOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
}

/** An operation of a valid document. */
export interface ObservedOperation {
  type: 'query' | 'mutation' | 'subscription';
  name: string | undefined;
  /** Names of its root fields in the schema, by those in the response. The same object each time for one document. */
  fields: ReadonlyMap<string, string>;
  call: ObservedCall;
}

/** Observes round trips to the database. */
export interface DatabaseObserver {
  /** @returns called once, when the batch has its answer or has failed as a whole */
  sent(batch: SentBatch): (failure?: DatabaseFailure) => void;
  /** A read was sent to this server, where there are several. */
  readOn?(node: string): void;
}

/** Low-cardinality labels for a queue. */
export interface QueueName {
  /** The table. */
  readonly collection: string;
  readonly operation: string;
}

/** A batch that travels in one round trip. */
export interface SentBatch extends QueueName {
  readonly size: number;
  /** The deadline of each input. */
  readonly deadlines: readonly Deadline[];
}

export interface DatabaseFailure {
  /** PostgreSQL's own code, if the failure comes from there. */
  state: string | undefined;
  /** One of few words: the class of the SQLSTATE, `timeout`, `unavailable` or `other`. */
  type: string;
}

/** A queue at this moment. */
export interface QueueState extends QueueName {
  readonly waiting: number;
  /** How long (ms) its first input has waited. */
  readonly oldest: number;
  /** How many inputs have been rejected since the start, because too much was pending. */
  readonly refused: number;
}

/** A connection pool at this moment. */
export interface PoolState {
  /** `primary`, or host and port of a read node. */
  readonly pool: string;
  readonly idle: number;
  readonly used: number;
  readonly max: number;
  /** How many statements wait for a connection. */
  readonly pending: number;
}

/** Observes API keys. */
export interface KeyObserver {
  /** A key was looked up in the database. */
  lookedUp(result: LookUpResult): void;
  /** A deprecated operation was called with the key of this name. */
  deprecatedCall(operation: string, key: string): void;
}

export type LookUpResult = 'known' | 'unknown' | 'failed';

/** The parts of the HTTP server that metrics read. */
export interface ObservedApp {
  readonly server: Server;
  readonly activeRequests: { readonly count: number };
  readonly isDraining: boolean;
  /** Requests refused so far because the event loop was full. */
  readonly shedRequests: number;
  readonly subscriptions: { readonly count: number; readonly delivered: number };
  readonly graphqlSchema: GraphQLSchema;
  /** The OpenAPI document. */
  swagger(): object;
  addHook(name: 'onReady', hook: () => Promise<void>): unknown;
}

/** The parts of the database that metrics read. */
export interface ObservedDatabase {
  readonly queues: readonly QueueState[];
  readonly pools: readonly PoolState[];
  ping(): Promise<unknown>;
}
