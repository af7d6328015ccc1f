import { AsyncLocalStorage } from 'node:async_hooks';

/** Error codes of both REST and GraphQL, with their HTTP status. */
const common = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONFLICT: 409,
  IDEMPOTENCY_KEY_IN_USE: 409,
  GONE: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  IDEMPOTENCY_KEY_REUSED: 422,
  TOO_MANY_REQUESTS: 429,
  REQUEST_HEADER_FIELDS_TOO_LARGE: 431,
  INTERNAL_SERVER_ERROR: 500,
  NOT_IMPLEMENTED: 501,
  SERVICE_UNAVAILABLE: 503,
} as const;

/** Error codes of GraphQL operations only. */
const ofOperations = {
  TOO_MANY_TOKENS: 400,
  QUERY_TOO_DEEP: 400,
  TOO_MANY_ALIASES: 400,
  QUERY_TOO_COSTLY: 400,
  PERSISTED_QUERY_NOT_SUPPORTED: 400,
  OPERATION_NOT_TRUSTED: 403,
  NOT_ACCEPTABLE: 406,
} as const;

/**
 * The service's own error codes; others are Apollo Server's
 * (api/graphql/answer.ts). REST sends code and status in an Error body, GraphQL
 * in `errors[].extensions`.
 */
export const httpStatusOf = { ...common, ...ofOperations };

export const restCodes = Object.keys(common);

export type ErrorCode = keyof typeof httpStatusOf;

interface StoreErrorOptions {
  /** The underlying failure. It is logged and never sent to a client. */
  cause?: unknown;
  /**
   * Response headers that the failure implies, for example `Allow` or
   * `Retry-After`.
   */
  headers?: Record<string, string>;
  /**
   * Members beside code, message and status, for example the current `version`.
   */
  details?: object;
  /** True when the work may have been done despite the error. */
  isOutcomeUnknown?: boolean;
  /** Why a key or token was refused, for the log and the metrics. */
  reason?: string | undefined;
}

/** A failure that a client may see. `message` is public. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
  readonly code: ErrorCode;
  readonly headers: Record<string, string>;
  readonly details: object;
  readonly isOutcomeUnknown: boolean;
  readonly reason: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    { cause, ...options }: StoreErrorOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.headers = options.headers ?? {};
    this.details = options.details ?? {};
    this.isOutcomeUnknown = options.isOutcomeUnknown ?? false;
    this.reason = options.reason;
  }

  get status() {
    return httpStatusOf[this.code];
  }

  /** In seconds, if it is worth to repeat the request. */
  get retryAfter() {
    const wait = this.headers['retry-after'];
    return wait && Number(wait);
  }

  /** The specification's Error body. */
  toBody() {
    return {
      code: this.code,
      message: this.message,
      status: this.status,
      ...this.details,
    };
  }
}

/** For an input that is refused. */
export function badInput(message: string, cause?: unknown) {
  return new StoreError('BAD_USER_INPUT', message, { cause });
}

/** The result, or the error, which fails one of several alone. */
export function orError<Out>(make: () => Out) {
  try {
    return make();
  } catch (error) {
    return error as Error;
  }
}

export function internalError(cause: unknown) {
  return new StoreError(
    'INTERNAL_SERVER_ERROR',
    'The service failed to answer this request.',
    { cause },
  );
}

/** A temporary failure, most often of the database. */
export class Unavailable extends StoreError {
  override readonly name = 'Unavailable';

  /**
   * @param isOutcomeUnknown true when a write may have been executed, so that a
   *   retry may write twice. Otherwise a retry after a second is worth it:
   *   nothing was written, or the request has an idempotency key.
   */
  constructor(message: string, cause?: unknown, isOutcomeUnknown = false) {
    const headers: Record<string, string> = isOutcomeUnknown
      ? {}
      : { 'retry-after': '1' };
    super('SERVICE_UNAVAILABLE', message, { cause, isOutcomeUnknown, headers });
  }

  static busy() {
    return new Unavailable(
      'Too many requests wait for the database; try again shortly.',
    );
  }

  /** For a missed deadline when nothing was written. */
  static late() {
    return new Unavailable(
      'The database did not answer in time; try again shortly.',
    );
  }

  static outcomeUnknown(cause?: unknown) {
    const message =
      'The database did not say whether this was stored: it may have been. Look for it before you send it again.';
    return new Unavailable(message, cause, true);
  }
}

/** Those that modules report while they are imported. */
const faultsOfImports = { isCollected: false, messages: [] as string[] };
const faultsOfBuild = new AsyncLocalStorage<typeof faultsOfImports>();

/** Makes `reportFault` collect faults already before the first build. */
export function collectImportFaults() {
  faultsOfImports.isCollected = true;
}

/**
 * Reports a fault in the code of a module.
 *
 * @throws Error where no faults are collected
 */
export function reportFault(message: string) {
  const faults = faultsOfBuild.getStore() ?? faultsOfImports;
  if (!faults.isCollected) throw new Error(message);
  faults.messages.push(message);
}

/** Reports what work throws, so that the build goes on. */
export function reportThrown<T>(work: () => T) {
  try {
    return work();
  } catch (error) {
    reportFault((error as Error).message);
    return undefined;
  }
}

/**
 * Runs a build, and collects the faults that modules report meanwhile.
 *
 * @throws Error with a line for every fault, also of what they declare
 */
export async function namingAllFaults<T>(build: () => Promise<T>) {
  faultsOfImports.isCollected = false;
  const messages = [...faultsOfImports.messages];
  const faults = { isCollected: true, messages };
  let failure: Error | undefined;
  const built = await faultsOfBuild.run(faults, build).catch((error) => {
    failure = error;
  });
  faults.isCollected = false;
  if (messages.length > 0) {
    const all = [...messages, ...(failure ? [failure.message] : [])];
    const lines = all.flatMap((fault) => fault.split('\n'));
    failure = new Error([...new Set(lines)].join('\n'));
  }
  if (failure) throw failure;
  return built as T;
}
