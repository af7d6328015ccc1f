/**
 * The error codes of the service, then those of GraphQL only, then those of
 * this client.
 */
export const errorCodes = [
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'CONFLICT',
  'IDEMPOTENCY_KEY_IN_USE',
  'GONE',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'IDEMPOTENCY_KEY_REUSED',
  'TOO_MANY_REQUESTS',
  'REQUEST_HEADER_FIELDS_TOO_LARGE',
  'INTERNAL_SERVER_ERROR',
  'NOT_IMPLEMENTED',
  'SERVICE_UNAVAILABLE',
  'TOO_MANY_TOKENS',
  'QUERY_TOO_DEEP',
  'TOO_MANY_ALIASES',
  'QUERY_TOO_COSTLY',
  'OPERATION_NOT_TRUSTED',
  'NOT_ACCEPTABLE',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'PERSISTED_QUERY_NOT_FOUND',
  'PERSISTED_QUERY_NOT_SUPPORTED',
  'NETWORK_ERROR',
  'TIMEOUT',
  'UNEXPECTED_ANSWER',
] as const;

/** A newer service may have unknown codes. */
export type Code = (typeof errorCodes)[number] | (string & {});

/** An error of a GraphQL response. */
export interface GraphQLFailure {
  message: string;
  path?: ReadonlyArray<string | number>;
  extensions?: { code?: string; status?: number; retryAfter?: number };
}

interface Details {
  status?: number | undefined;
  retryAfter?: number | undefined;
  errors?: readonly GraphQLFailure[] | undefined;
  data?: unknown;
  cause?: unknown;
}

/** A failed call. No message contains the key. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  /**
   * A code of the service, or `NETWORK_ERROR`, `TIMEOUT`, `UNEXPECTED_ANSWER`.
   * Decide by this, not by the message.
   */
  readonly code: Code;
  /**
   * The HTTP status; undefined without a response. In GraphQL, the status of
   * the error, not of the response.
   */
  readonly status: number | undefined;
  /** Seconds until a retry, when the service sent them. */
  readonly retryAfter: number | undefined;
  /** All errors of a GraphQL response; this is the first. */
  readonly errors: readonly GraphQLFailure[] | undefined;
  /** The partial data of a GraphQL response. */
  readonly data: unknown;

  constructor(
    code: Code,
    message: string,
    { status, retryAfter, errors, data, cause }: Details = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
    this.errors = errors;
    this.data = data;
  }
}

/**
 * The error for a response that is not the service's, but perhaps a proxy's.
 */
export function unexpected(
  what: string,
  status: number,
  retryAfter?: number,
): StoreError {
  return new StoreError('UNEXPECTED_ANSWER', what, { status, retryAfter });
}
