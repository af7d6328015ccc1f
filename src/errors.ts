/** What REST may answer, and GraphQL, too: machine-readable code -> HTTP status. */
const common = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  EXPECTATION_FAILED: 417,
  TOO_MANY_REQUESTS: 429,
  REQUEST_HEADER_FIELDS_TOO_LARGE: 431,
  INTERNAL_SERVER_ERROR: 500,
  NOT_IMPLEMENTED: 501,
  SERVICE_UNAVAILABLE: 503,
} as const;

/** What only an operation of GraphQL can fail with. */
const ofOperations = {
  TOO_MANY_TOKENS: 400,
  QUERY_TOO_DEEP: 400,
  TOO_MANY_ALIASES: 400,
  TOO_MANY_ROOT_FIELDS: 400,
  TOO_MANY_DIRECTIVES: 400,
  QUERY_TOO_COSTLY: 400,
  OPERATION_NOT_TRUSTED: 403,
  NOT_ACCEPTABLE: 406,
} as const;

/** The one vocabulary. REST sends code and status in an Error body, GraphQL in `errors[].extensions`. */
export const httpStatusOf = { ...common, ...ofOperations };

/** The codes that REST answers. */
export const restCodes = Object.keys(common);

export type ErrorCode = keyof typeof httpStatusOf;

/** The specification's Error body. */
export interface ErrorBody {
  code: ErrorCode;
  message: string;
  status: number;
}

export interface StoreErrorOptions {
  /** What failed underneath; logged, never told outside. */
  cause?: unknown;
  /** Response headers the failure implies, `Allow` or `Retry-After` for instance. */
  headers?: Record<string, string>;
}

/** A failure that a client may be told about. `message` is public. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: ErrorCode;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: StoreErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return httpStatusOf[this.code];
  }

  toBody(): ErrorBody {
    return { code: this.code, message: this.message, status: this.status };
  }
}

/** What a client is told of a failure that nobody foresaw. */
export function internalError(cause: unknown): StoreError {
  return new StoreError('INTERNAL_SERVER_ERROR', 'The service failed to answer this request.', { cause });
}

/** What passes: nothing was begun, and a second later it may be possible. */
export function tryAgain(message: string, cause?: unknown): StoreError {
  const headers = { 'retry-after': '1' };
  return new StoreError('SERVICE_UNAVAILABLE', message, cause === undefined ? { headers } : { cause, headers });
}
