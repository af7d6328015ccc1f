import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, internalError, StoreError } from '../../errors.ts';

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
): void {
  const failure = toLoggedFailure(error, request);
  reply.code(failure.status).headers(failure.headers);
  if (request.server.sendErrorPage?.(failure, request, reply)) return;
  reply
    .type('application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(failure.toBody());
}

/**
 * Converts an error to one that a client may see, logs it, and notes its code
 * for the observers.
 */
export function toLoggedFailure(
  error: unknown,
  request: FastifyRequest,
): StoreError {
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
): void {
  // Omits the message, which may quote client input.
  if (status < 500 || (cause === undefined && !isOutcomeUnknown))
    log.debug({ code }, 'refused');
  else if (isOutcomeUnknown)
    log.warn(
      { code, reason: (cause as Error | undefined)?.message },
      'outcome unknown',
    );
  else if (code === 'SERVICE_UNAVAILABLE')
    log.debug({ err: cause, code }, message);
  else log.error({ err: cause, code }, message);
}

export const notJson =
  'The body must be JSON, sent with Content-Type: application/json.';

/**
 * Fastify's errors are converted by status, all others to a 500. @param
 * bodyLimit in bytes
 */
function toStoreError(error: unknown, bodyLimit: number): StoreError {
  if (error instanceof StoreError) return error;
  const { code, statusCode = 500 } = error as Partial<FastifyError>;
  const refusal = (code: ErrorCode, message: string) =>
    new StoreError(code, message, { cause: error });
  if (statusCode >= 500) return internalError(error);
  if (statusCode === 403 || statusCode === 404)
    return refusal('NOT_FOUND', 'There is nothing at this address.');
  if (statusCode === 413)
    return refusal(
      'PAYLOAD_TOO_LARGE',
      `The body has more than ${bodyLimit} bytes.`,
    );
  if (statusCode === 415) return refusal('UNSUPPORTED_MEDIA_TYPE', notJson);
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return refusal(
      'BAD_USER_INPUT',
      'The body is shorter or longer than its Content-Length.',
    );
  return refusal('BAD_USER_INPUT', 'This request cannot be answered.');
}
