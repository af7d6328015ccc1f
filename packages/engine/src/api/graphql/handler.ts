import { isRecord } from '@animal-store/exact-json';
import type { Values } from '@animal-store/graphql-limits/cost';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { StoreError } from '../../errors.ts';
import { parseJson } from '../http/bodies.ts';
import { STATUS_CODES } from '../http/failures.ts';
import { exceeds } from '../http/lifecycle.ts';
import { listOf, varyBy } from '../http/negotiation.ts';
import { answerNotFound } from '../http/routes.ts';
import {
  acceptedIn,
  sendGraphQLError,
  sendOutcome,
  Unprocessable,
} from './answer.ts';
import type { RequestParameters } from './context.ts';
import { Apollo, type Executor } from './document.ts';
import { interpreter } from './execution.ts';
import { Pipeline, type PipelineOptions } from './pipeline.ts';
import type { References } from './scopes.ts';

/** What features change of the GraphQL API; at most one has each. */
export interface GraphQLParts {
  /**
   * Adds to the schema of the modules.
   *
   * @param shared that of the modules that are not local
   */
  schema?(
    schema: GraphQLSchema,
    shared: GraphQLSchema,
    references: References,
  ): GraphQLSchema;
  /**
   * Finds the document that a request names, or refuses it: the operator has
   * registered all of them.
   */
  findDocument?: FindDocument;
  /**
   * Prepares executions.
   *
   * @param interpret those of graphql-js
   */
  executor?(schema: GraphQLSchema, interpret: Executor): Executor;
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
 * The steps of a request: media types and parameters; then those of the
 * pipeline; the answer. Apollo Server's CSRF prevention is not needed: every
 * request has `Authorization`, which foreign pages cannot send without a
 * preflight.
 */
export async function graphQL(
  app: FastifyInstance,
  {
    parts,
    ...options
  }: Omit<PipelineOptions, 'executor' | 'isTrusted'> & { parts: GraphQLParts },
) {
  // Node.js has no reason phrase for it yet.
  STATUS_CODES[294] ??= 'Partial Success';
  const { findDocument } = parts;
  const isTrusted = findDocument !== undefined;
  const interpret = interpreter(options);
  const executor = parts.executor?.(options.schema, interpret) ?? interpret;
  const all = { ...options, isTrusted, executor };
  const apollo = new Apollo(all);
  await apollo.start();
  const pipeline = new Pipeline(apollo, all);
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
      // The name that the client sent; the document may have no such operation.
      call.operation = { name: parameters.operationName };
      return sendOutcome(await answer(parameters, context), context);
    },
  };
  // Apart, because a feature may add to one of them.
  for (const method of ['GET', 'POST']) app.route({ ...route, method });
}

/**
 * The answer to a WebSocket upgrade. It needs no key: these clients send theirs
 * in a message, and a 401 would mislead them.
 */
const noWebSocket =
  'WebSocket is not supported: send a subscription by POST with `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';

/**
 * The answer to an `Accept` without a type of ours. It precedes the execution:
 * a mutation must not run when its result cannot be sent.
 */
const notAcceptable =
  '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';

/** True for a WebSocket upgrade, for example graphql-ws. */
function isWebSocket({ headers }: FastifyRequest) {
  return listOf(headers.upgrade?.toLowerCase()).includes('websocket');
}

/**
 * Returns the parameters with the text of the document that they name.
 *
 * @throws StoreError
 */
export type FindDocument = (parameters: RequestParameters) => RequestParameters;

const unprocessable = (message: string) =>
  new Unprocessable('BAD_USER_INPUT', message);

/**
 * Reads the parameters of a request.
 *
 * @param findDocument without it, only texts run
 * @throws StoreError
 */
export function readParameters(
  request: Pick<FastifyRequest, 'method' | 'headers' | 'query' | 'body'>,
  findDocument?: FindDocument,
) {
  let given = request.body;
  if (request.method !== 'POST') given = searchParameters(request);
  if (Array.isArray(given))
    throw unprocessable(
      'The body must be one operation, a JSON object: a list of them is not accepted.',
    );
  if (!isRecord(given))
    throw unprocessable(
      'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.',
    );
  const parameters: RequestParameters = {
    query: parameterIn(given, 'query', isString, 'a string') || undefined,
    documentId: given.documentId || undefined,
    operationName: parameterIn(given, 'operationName', isString, 'a string'),
    variables: parameterIn(given, 'variables', isRecord, 'an object'),
    extensions: parameterIn(given, 'extensions', isRecord, 'an object'),
  };
  if (exceeds(parameters.variables, mostMembers, membersOf))
    throw unprocessable(tooManyMembers);
  const found = findDocument?.(parameters) ?? parameters;
  if (found.query || found.extensions?.persistedQuery) return found;
  // Its client then sends the text.
  if (found.documentId)
    throw new Unprocessable('PERSISTED_QUERY_NOT_SUPPORTED', noDocuments);
  throw unprocessable(
    'There is no `query`: it must be the text of an operation.',
  );
}

const noDocuments =
  'No documents are registered here: send the text as `query`.';

/** graphql-js shows all of them in its messages about wrong variables. */
const mostMembers = 10_000;
const tooManyMembers =
  'The objects in `variables` have more than 10000 members.';
const membersOf = (part: unknown) =>
  isRecord(part) ? Object.keys(part).length : 0;

const isString = (value: unknown): value is string => typeof value === 'string';

function parameterIn<Value>(
  given: Values,
  name: string,
  isValid: (value: unknown) => value is Value,
  type: string,
): Value | undefined {
  const value = given[name] ?? undefined;
  if (value === undefined || isValid(value)) return value;
  throw unprocessable(`\`${name}\` must be ${type}.`);
}

/** An empty parameter is an absent one (GraphQL over HTTP, "GET"). */
function searchParameters({
  query,
  headers: { 'content-type': type },
}: Pick<FastifyRequest, 'query' | 'headers'>) {
  if (type && !/^application\/json\s*(?:;|$)/i.test(type))
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', noParameters);
  const given: Values = { ...(query as object) };
  for (const [name, value] of Object.entries(given)) {
    const isJson = name === 'variables' || name === 'extensions';
    if (value === '') delete given[name];
    else if (isJson && isString(value))
      given[name] = parseJson(Buffer.from(value), `The ${name} are`);
  }
  return given;
}

const noParameters =
  'A GET request must have no Content-Type other than application/json.';
