/** The codes of the service, those of GraphQL alone last, and then the client's own. */
export const errorCodes = [
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'IDEMPOTENCY_KEY_IN_USE',
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
  'TOO_MANY_ROOT_FIELDS',
  'TOO_MANY_DIRECTIVES',
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

/** A newer service may have codes that this client does not know. */
export type Code = (typeof errorCodes)[number] | (string & {});

/** One of the errors of a GraphQL answer. */
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

/** Whatever the service refused, or the network did not bring. No message contains the key. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  /** What to decide by: a code of the service, or `NETWORK_ERROR`, `TIMEOUT`, `UNEXPECTED_ANSWER`. */
  readonly code: Code;
  /** The HTTP status; undefined when there was no answer. In GraphQL that of the error, whatever the answer's own is. */
  readonly status: number | undefined;
  /** In how many seconds it may be tried again, where the service said so. */
  readonly retryAfter: number | undefined;
  /** All errors of a GraphQL answer; the first is this one. */
  readonly errors: readonly GraphQLFailure[] | undefined;
  /** What a GraphQL answer has beside its errors. */
  readonly data: unknown;

  constructor(code: Code, message: string, { status, retryAfter, errors, data, cause }: Details = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
    this.errors = errors;
    this.data = data;
  }
}

/** What is no answer of the service, but perhaps of something in front of it. */
export function unexpected(what: string, status: number, retryAfter?: number): StoreError {
  return new StoreError('UNEXPECTED_ANSWER', what, { status, retryAfter });
}
