import type { FastifyError } from 'fastify';
import { type ErrorCode, internalError, StoreError } from '../errors.ts';

const known: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['PAYLOAD_TOO_LARGE', 'The body is too large.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['BAD_USER_INPUT', 'The body is shorter or longer than its Content-Length.'],
  FST_ERR_BAD_URL: ['NOT_FOUND', 'There is nothing at this address.'],
  FST_ERR_MAX_PARAM_LENGTH: ['NOT_FOUND', 'There is nothing at this address.'],
};

/** Any failure as one that a client may be told about: ours as it is, the framework's by name, all others as a 500. */
export function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const [code, message] = known[(error as FastifyError).code] ?? [];
  return code && message ? new StoreError(code, message, { cause: error }) : internalError(error);
}
