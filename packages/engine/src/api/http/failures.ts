import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, internalError, StoreError } from '../../errors.ts';
import { acceptedTypes, varyBy } from './negotiation.ts';

/**
 * The reason phrases. An import of `node:http` would load `fetch`: 17 MB, and
 * 36 ms.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http');

declare module 'fastify' {
  interface FastifyInstance {
    /** Sends a failure as a page; false for a client that wants none. */
    sendErrorPage?(
      failure: StoreError,
      request: FastifyRequest,
      reply: FastifyReply,
    ): boolean;
  }
}

/** Sends an Error body. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const failure = toLoggedFailure(error, request);
  reply.code(failure.status).headers(failure.headers);
  if (request.server.sendErrorPage?.(failure, request, reply)) return;
  const [best] = acceptedTypes(request, ['application/json', problemType]);
  const isProblem = best === problemType;
  if (isProblem) varyBy(reply, 'Accept');
  reply
    .type(isProblem ? best : 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(isProblem ? problemOf(failure) : failure.toBody());
}

const problemType = 'application/problem+json';

/** Problem details of the type `about:blank` (RFC 9457, section 4.2.1). */
function problemOf(failure: StoreError) {
  const { message: detail, ...others } = failure.toBody();
  return { title: STATUS_CODES[failure.status], detail, ...others };
}

/**
 * Converts an error to one that a client may see, logs it, and notes its code
 * for the observers.
 */
export function toLoggedFailure(error: unknown, request: FastifyRequest) {
  const failure = toStoreError(error, request.routeOptions.bodyLimit);
  logFailure(failure, request);
  // Requests on the operations port have no context.
  if (request.call) {
    request.call.code ??= failure.code;
    request.call.reason ??= failure.reason;
  }
  return failure;
}

/**
 * Logs a failure. A temporary failure is logged once, as an incident
 * (`Incident`); the log line of each request that it affected has its code. A
 * write with an unknown outcome gets a line, unless its idempotency key makes a
 * retry safe: its client must check whether it was stored.
 */
export function logFailure(
  { code, status, cause, isOutcomeUnknown, message }: StoreError,
  { log }: FastifyRequest,
) {
  const { message: reason } = (cause ?? {}) as Partial<Error>;
  if (isOutcomeUnknown) log.warn({ code, reason }, 'outcome unknown');
  // Omits the message, which may quote client input.
  else if (status < 500 || !cause) log.debug({ code }, 'refused');
  else if (status === 503) log.debug({ err: cause, code }, message);
  else log.error({ err: cause, code }, message);
}

/** For an address, also of a missing file. */
export function nothingHere(cause?: unknown) {
  const message = 'There is nothing at this address.';
  return new StoreError('NOT_FOUND', message, { cause });
}

export const notJson =
  'The body must be JSON, sent with Content-Type: application/json.';

// Fastify's, and of a body that breaks off. What a module calls may fail with a
// status of another request.
const ofRequest = /^FST_|^ECONNRESET$/;

/**
 * Converts Fastify's errors by their status, all others to a 500.
 *
 * @param bodyLimit in bytes
 */
function toStoreError(error: unknown, bodyLimit: number) {
  if (error instanceof StoreError) return error;
  const { code, statusCode = 500 } = error as Partial<FastifyError>;
  const isOfRequest = ofRequest.test(`${code}`);
  if (!isOfRequest || statusCode >= 500) return internalError(error);
  const refusal = (code: ErrorCode, message: string) =>
    new StoreError(code, message, { cause: error });
  switch (statusCode) {
    case 403:
    case 404:
      return nothingHere(error);
    case 413: {
      const message = `The body has more than ${bodyLimit} bytes.`;
      return refusal('PAYLOAD_TOO_LARGE', message);
    }
    case 415:
      return refusal('UNSUPPORTED_MEDIA_TYPE', notJson);
    default:
      return refusal('BAD_USER_INPUT', 'This request cannot be answered.');
  }
}
