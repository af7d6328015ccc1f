import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import { STATUS_CODES } from '../http/malformed.ts';
import { listOf, varyBy } from '../http/negotiation.ts';
import { answerNotFound } from '../http/routes.ts';
import {
  type Outcome,
  outcomeOf,
  refused,
  sendGraphQLError,
  sendOutcome,
} from './answer.ts';
import type { Execute, GraphQLContext } from './context.ts';
import {
  Apollo,
  type DocumentOptions,
  Documents,
  Operation,
} from './document.ts';
import { interpreter } from './execution.ts';
import { charge } from './pipeline.ts';
import {
  acceptedIn,
  type FindDocument,
  type RequestParameters,
  readParameters,
} from './request.ts';
import type { References } from './scopes.ts';

/** What features change of the GraphQL API; at most one has each. */
export interface GraphQLParts {
  /** Adds to the schema of the modules. */
  schema?(schema: GraphQLSchema, references: References): GraphQLSchema;
  /** Finds the document that a request names, or refuses it. */
  findDocument?: FindDocument;
  /** Whether the operator has registered all documents, and so their names. */
  isTrusted?: boolean;
  /** Prepares executions. @param interpret those of graphql-js */
  executor?(
    schema: GraphQLSchema,
    interpret: (operation: Operation) => Execute,
  ): (operation: Operation) => Execute;
  /** Answers in place of the pipeline, by its steps. */
  answer?(
    pipeline: Pipeline,
    app: FastifyInstance,
  ): Promise<Pipeline['answer']>;
}

/**
 * Serves the GraphQL API at the plugin's prefix, by POST and (queries only)
 * GET.
 *
 * The steps of a request: media types and parameters
 * (request.ts); then those of the pipeline; the answer. Apollo
 * Server's CSRF prevention is not needed: every request has `Authorization`,
 * which foreign pages cannot send without a preflight.
 */
export async function graphQL(
  app: FastifyInstance,
  {
    parts,
    ...options
  }: Omit<PipelineOptions, 'executor' | 'isTrusted'> & { parts: GraphQLParts },
): Promise<void> {
  // Node.js has no reason phrase for it yet.
  STATUS_CODES[294] ??= 'Partial Success';
  const { isTrusted, findDocument } = parts;
  const interpret = interpreter(options);
  const executor = parts.executor?.(options.schema, interpret) ?? interpret;
  const all = { ...options, isTrusted, executor };
  const apollo = new Apollo(all);
  await apollo.start();
  const pipeline = new Pipeline(new Documents(apollo, all), all);
  const answer =
    (await parts.answer?.(pipeline, app)) ?? pipeline.answer.bind(pipeline);

  app.setErrorHandler(sendGraphQLError);
  // Also formats rejections before routing (PUT, no key) as GraphQL responses.
  app.setNotFoundHandler(answerNotFound);
  const route: Omit<RouteOptions, 'method'> = {
    url: '',
    schema: { hide: true },
    // Root fields charge themselves. Apollo Server and the resolvers validate
    // the input.
    config: {
      public: isWebSocket,
      scope: 'read',
      isUnmetered: true,
      validatesItself: true,
    },
    async handler(request, reply) {
      if (isWebSocket(request))
        throw new StoreError('NOT_ACCEPTABLE', noWebSocket);
      if (request.method !== 'POST') varyBy(reply, 'Accept');
      const accepted = acceptedIn(request);
      if (!accepted.mediaType)
        throw new StoreError('NOT_ACCEPTABLE', notAcceptable);
      const { call } = request;
      const context = { call, request, reply, accepted };
      const parameters = readParameters(request, findDocument);
      // The client's name for it, which a document may lack.
      call.operation = { name: parameters.operationName, fields: undefined };
      return sendOutcome(await answer(parameters, context), context);
    },
  };
  // Apart, because a feature may add to one of them.
  for (const method of ['GET', 'POST']) app.route({ ...route, method });
}

/**
 * Is answered without authentication, because these clients send their key in a
 * message, and a 401 would mislead them.
 */
const noWebSocket =
  'WebSocket is not supported: send a subscription by POST with `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';

/**
 * Comes before execution, because a mutation must not run when its result
 * cannot be sent.
 */
const notAcceptable =
  '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';

/** True for a WebSocket upgrade, for example graphql-ws. */
function isWebSocket({ headers }: FastifyRequest): boolean {
  return listOf(headers.upgrade?.toLowerCase()).includes('websocket');
}

interface PipelineOptions extends DocumentOptions {
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
}

/** The steps of a request, from its parameters to its outcome. */
export class Pipeline {
  constructor(
    readonly documents: Documents,
    readonly options: PipelineOptions,
  ) {}

  async answer(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const { documents } = this;
    const found =
      documents.known(parameters) ?? (await documents.find(parameters));
    if (!(found instanceof Operation)) return found;
    return this.perform(found, parameters.variables, context);
  }

  async perform(
    operation: Operation,
    variables: Record<string, unknown> = {},
    context: GraphQLContext,
  ): Promise<Outcome> {
    this.begin(operation, context);
    const { options } = this;
    let outcome: Outcome;
    try {
      await charge(operation, variables, context, options);
      outcome = outcomeOf(await operation.execute(variables, context));
    } catch (error) {
      outcome = refused(error as Error);
    }
    return this.end(operation, context, outcome);
  }

  /** Tells observers of an operation. */
  begin(operation: Operation, context: GraphQLContext): void {
    const { name, fieldNames: fields, type } = operation;
    const { call } = context;
    context.operation = operation;
    call.operation = { name, fields };
    call.isWrite = type === 'mutation';
    for (const observer of this.options.observers)
      observer.began?.(operation, call);
  }

  /** Ends its observation. A stream continues, and reports its own end. */
  end(
    operation: Operation,
    { call }: GraphQLContext,
    outcome: Outcome,
  ): Outcome {
    if (outcome.stream) return outcome;
    for (const observer of this.options.observers)
      observer.ended(operation, call, outcome.errors);
    return outcome;
  }
}
