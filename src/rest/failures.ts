import type { FastifyError } from 'fastify';
import { type ErrorCode, internalError, StoreError } from '../errors.ts';

const known: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['PAYLOAD_TOO_LARGE', 'The body is too large.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['BAD_USER_INPUT', 'The body is shorter or longer than its Content-Length.'],
  FST_ERR_BAD_URL: ['NOT_FOUND', 'There is nothing at this address.'],
};

/** Those of the framework and its plugins that have no name: whatever they call the client's fault. */
function unnamed({ statusCode = 500 }: Partial<FastifyError>): [ErrorCode, string] | [] {
  if (statusCode === 403 || statusCode === 404) return ['NOT_FOUND', 'There is nothing at this address.'];
  return statusCode < 500 ? ['BAD_USER_INPUT', 'This request cannot be answered.'] : [];
}

/** Any failure as one that a client may be told about: ours as it is, the framework's by name, all others as a 500. */
export function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const [code, message] = known[(error as FastifyError).code] ?? unnamed(error as FastifyError);
  return code && message ? new StoreError(code, message, { cause: error }) : internalError(error);
}
