import { unwrapResolverError } from '@apollo/server/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { type ErrorCode, httpStatusOf, internalError, StoreError } from '../../errors.ts';
import { logFailure, sendFailure, toStoreError } from '../http/errors.ts';
import { acceptedBy, mediaTypes } from './media-types.ts';
import { plainWords } from './words.ts';

/** Codes of Apollo Server that have an equivalent among our own. */
const renamed: Record<string, ErrorCode> = {
  BAD_REQUEST: 'BAD_USER_INPUT',
  OPERATION_RESOLUTION_FAILURE: 'BAD_USER_INPUT',
};

const longestMessage = 1000;

/** Formats an error: the store's and Apollo Server's own with code and status, all others as a 500 without details. */
export function formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const cause = unwrapResolverError(error);
  const { locations, path } = formatted;
  const place = { ...(locations && { locations }), ...(path && { path }) };
  if (cause instanceof StoreError) return { ...toFormatted(cause), ...place };
  // From one of our own rules: the operation exceeds a limit.
  const refusal = error instanceof GraphQLError && error.originalError;
  if (refusal instanceof StoreError) return { ...toFormatted(refusal), ...place };
  const isRefused = isRefusedOperation(error) || isRefusedArgument(error);
  const code = isRefused ? 'BAD_USER_INPUT' : `${formatted.extensions?.code}`;
  if (!(error instanceof GraphQLError) || code === 'INTERNAL_SERVER_ERROR') {
    return { ...toFormatted(internalError(cause)), ...place };
  }
  const known = codeWithoutWord(error, formatted.message) ?? renamed[code] ?? code;
  const status = httpStatusOf[known as ErrorCode] ?? 400;
  // Messages quote names and values, which may be as long as a body, and there may be a hundred messages.
  return {
    message: plainWords(formatted.message).slice(0, longestMessage),
    ...place,
    extensions: { code: known, status },
  };
}

export type FormatError = (formatted: GraphQLFormattedError, error: unknown) => GraphQLFormattedError;

/** Formats an error of graphql-js as Apollo Server does. */
export function formatted(error: GraphQLError, format: FormatError): GraphQLFormattedError {
  return format({ ...error.toJSON(), extensions: { code: 'INTERNAL_SERVER_ERROR', ...error.extensions } }, error);
}

/** The same without names of the schema: Apollo Server hides them only in errors about documents, not variables. */
export function formatErrorOfClosedSchema(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const { message, ...rest } = formatError(formatted, error);
  // Apollo Server's message about introspection explains how to enable it in code.
  const plain = /^GraphQL introspection is not allowed/.test(message) ? 'Introspection is switched off here.' : message;
  return { message: plain.replace(/ ?Did you mean .+$|: it must be one of .+(?=\.$)/s, ''), ...rest };
}

/** The code of errors that graphql-js identifies only by the message, and Apollo Server only by the status. */
function codeWithoutWord({ extensions }: GraphQLError, message: string): ErrorCode | undefined {
  if (/^Syntax Error: Document contains more tha[nt] \d+ tokens/.test(message)) return 'TOO_MANY_TOKENS';
  const { status } = (extensions.http ?? {}) as { status?: number };
  return (['METHOD_NOT_ALLOWED', 'UNSUPPORTED_MEDIA_TYPE'] as const).find((code) => httpStatusOf[code] === status);
}

/** True when graphql-js cannot start an operation, here a subscription: its error has no path, cause or code. */
function isRefusedOperation(error: unknown): boolean {
  return error instanceof GraphQLError && !error.path && !error.originalError && !error.extensions.code;
}

/** True when a variable, for example null, makes an argument invalid: graphql-js's error has a path but no code. */
function isRefusedArgument(error: unknown): boolean {
  return error instanceof GraphQLError && /^Argument "/.test(error.message);
}

/** Logs the errors of operations with the request's id. */
export function logErrors(errors: readonly GraphQLError[], request: FastifyRequest): void {
  for (const error of errors) {
    const cause = unwrapResolverError(error);
    if (!(cause instanceof GraphQLError)) logFailure(toStoreError(cause), request);
  }
}

/**
 * Sends a failure outside an operation (no key, no JSON) as a GraphQL response, with the media type that the client
 * prefers: with `application/json` it cannot know that the body of a 4xx is GraphQL's (GraphQL over HTTP, "Body").
 */
export function sendGraphQLError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const type = acceptedBy(request).mediaType ?? mediaTypes.json;
  sendFailure(error, request, reply, (failure) => ({ errors: [toFormatted(failure)] }), type);
}

function toFormatted({ message, code, status, headers }: StoreError): GraphQLFormattedError {
  const retryAfter = headers['retry-after'];
  return { message, extensions: { code, status, ...(retryAfter && { retryAfter: Number(retryAfter) }) } };
}

/** The longest wait that any of the errors asks for, in seconds. */
export function retryAfter(errors: readonly GraphQLFormattedError[]): number {
  return Math.max(0, ...errors.map(({ extensions }) => Number(extensions?.retryAfter ?? 0)));
}
