import type { EventStream } from '@animal-store/graphql-http/event-stream';
import type { Accepted, Answered } from '@animal-store/graphql-http/over-http';
import type { Estimate } from '@animal-store/graphql-limits/cost';
import type { OperationLimits } from '@animal-store/graphql-limits/limits';
import type { ApolloServerPlugin } from '@apollo/server';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import type { CompiledQuery } from 'graphql-jit';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import type { OperationObserver } from '../../runtime/telemetry/observers.ts';
import type { RequestCallContext } from '../http/lifecycle.ts';
import type { Page } from '../pages/html.ts';

// What the steps of a GraphQL request pass on: its context, its operation, the result and the outcome.

/** The settings of the GraphQL API. */
export interface GraphQLOptions {
  schema: GraphQLSchema;
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
  /** Whether clients may read the schema, and errors suggest its names. */
  introspection: boolean;
  /** The page for browsers at `/graphql`, if any. */
  page: Page | undefined;
  /** Whether operations are compiled (graphql-jit) or interpreted (graphql-js); the responses are the same. */
  jit: boolean;
  /** Whether clients may register documents by hash at run time (automatic persisted queries). */
  apq: boolean;
  /** The manifest of the only documents that may run; any may when undefined. */
  trustedDocuments: string | undefined;
  limits: OperationLimits & { maxCost: number };
  /** Plugins of Apollo Server. With any, or Apollo's key, Apollo Server executes. */
  plugins: readonly ApolloServerPlugin<GraphQLContext>[];
  /** The key of GraphOS and the graph to which usage is reported. */
  apollo: { key: string | undefined; graphRef: string | undefined };
  logger: Pick<FastifyBaseLogger, 'debug' | 'info' | 'warn' | 'error'>;
}

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: RequestCallContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
  /** Set before execution. */
  operation?: Operation;
}

/** An operation of a valid document, with everything derived from it once. */
export interface Operation {
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  readonly type: `${OperationDefinitionNode['operation']}`;
  readonly name: string | undefined;
  /** Whether its document may have conditions. */
  readonly hasDirectives: boolean;
  /** Names of its root fields in the schema, by response key. */
  readonly fields: ReadonlyMap<string, string>;
  /** The distinct names of its root fields in the schema. */
  readonly fieldNames: readonly string[];
  /** The removal dates of the deprecated fields in its document, by their coordinates. */
  readonly deprecated: ReadonlyMap<string, Date>;
  /** @throws GraphQLError QUERY_TOO_COSTLY */
  estimate(variables: Record<string, unknown>): Estimate;
  /** The number of executions, and the compiled function. */
  uses: number;
  compiled?: CompiledQuery['query'];
}

/** True when no other part of the operation can have run before its field. */
export function isSingleField({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

/** The result of a request before its errors are formatted. */
export interface Result extends Answered {
  errors?: readonly GraphQLError[] | undefined;
  /** The headers from Apollo Server. */
  headers?: Iterable<[string, string]>;
  /** The events of a subscription, instead of data. */
  stream?: EventStream;
}

/** The outcome of a request. */
export interface Outcome extends Omit<Result, 'errors'> {
  /** As they are sent. */
  errors?: readonly GraphQLFormattedError[] | undefined;
  /** The errors behind them, which are logged. */
  failures?: readonly GraphQLError[] | undefined;
  /** From plugins. */
  extensions?: unknown;
  /** Undefined when the request has no executable operation. */
  operation?: Operation;
}
