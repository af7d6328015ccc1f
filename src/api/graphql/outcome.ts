import type { FastifyRequest } from 'fastify';
import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLFormattedError,
} from 'graphql';
import {
  type ErrorCode,
  httpStatusOf,
  internalError,
  StoreError,
} from '../../errors.ts';
import { logFailure } from '../http/failures.ts';
import type { EventStream } from '../subscriptions/event-stream.ts';
import type { Answered } from './request.ts';

/** The outcome of a request. */
export interface Outcome extends Answered {
  /** As they are sent. */
  errors?: readonly GraphQLFormattedError[] | undefined;
  /** The errors behind them, which are logged. */
  failures?: readonly GraphQLError[] | undefined;
  /** The headers from Apollo Server. */
  headers?: Iterable<[string, string]>;
  /** The events of a subscription, instead of data. */
  stream?: EventStream;
  /** From plugins. */
  extensions?: unknown;
  /** False when a part of the operation may have run despite the errors. */
  isRetrySafe?: boolean;
}

export function outcomeOf(
  result: Omit<Outcome, 'errors'> & Pick<ExecutionResult, 'errors'>,
): Outcome {
  const { errors: failures } = result;
  return failures
    ? { ...result, failures, errors: failures.map(formatError) }
    : (result as Outcome);
}

/** @param failure of an operation that has not run */
export function refused(failure: Error): Outcome {
  const error =
    failure instanceof GraphQLError
      ? failure
      : new GraphQLError(failure.message, { originalError: failure });
  return outcomeOf({ errors: [error], status: 500 });
}

/**
 * Maximum length, because graphql-js quotes names and values, which may be as
 * long as a body, in up to 100 messages.
 */
const longestMessage = 1000;

/**
 * Returns the failure behind an error: a StoreError, or an internal error.
 *
 * @returns undefined for errors of graphql-js and Apollo Server about a
 *   document, an operation or variables
 */
function publicErrorOf(error: GraphQLError): StoreError | undefined {
  const { originalError, extensions, path, message } = error;
  if (originalError instanceof StoreError) return originalError;
  if (extensions.code !== undefined) return undefined;
  // graphql-js reports an argument that a variable makes invalid like a field
  // that failed to serialize. Only the message, `Argument "...`, differs.
  const isRefused = path === undefined || /^Argument "/.test(message);
  if (isRefused && (originalError ?? error) instanceof GraphQLError)
    return undefined;
  return internalError(originalError ?? error);
}

/**
 * Formats an error: failures with code and status, internal ones without
 * details, all others unchanged.
 */
export function formatError(error: GraphQLError): GraphQLFormattedError {
  const { message, locations, path } = error;
  const place = { ...(locations && { locations }), ...(path && { path }) };
  const failure = publicErrorOf(error);
  if (failure) return { ...toFormatted(failure), ...place };
  let { code = 'BAD_USER_INPUT' } = error.extensions;
  // Apollo Server gives the errors of all validation rules this code.
  if (code === 'GRAPHQL_VALIDATION_FAILED')
    code = (error.originalError as GraphQLError)?.extensions?.code ?? code;
  // graphql-js provides no other way to detect it.
  const isTooLong =
    /^Syntax Error: Document contains more tha[nt] \d+ tokens/.test(message);
  const known = (isTooLong ? 'TOO_MANY_TOKENS' : code) as ErrorCode;
  const extensions = { code: known, status: httpStatusOf[known] ?? 400 };
  return { message: message.slice(0, longestMessage), ...place, extensions };
}

/** Formats a failure outside an operation. */
export function toFormatted({
  message,
  code,
  status,
  headers,
  details,
}: StoreError): GraphQLFormattedError {
  const retryAfter = headers['retry-after'];
  return {
    message,
    extensions: {
      code,
      status,
      ...details,
      ...(retryAfter && { retryAfter: Number(retryAfter) }),
    },
  };
}

/** Logs the failures of an operation with the request's id. */
export function logErrors(
  errors: readonly GraphQLError[],
  request: FastifyRequest,
): void {
  for (const error of errors) {
    const failure = publicErrorOf(error);
    if (failure) logFailure(failure, request);
  }
}
