import { StoreError } from './store-error.ts';

/**
 * True when a repeated request may succeed. Every request of this client may be
 * repeated: it only reads, or has an `Idempotency-Key`, with which the service
 * executes it once.
 */
function isTransient(error: unknown): error is StoreError {
  if (!(error instanceof StoreError)) return false;
  return error.errors
    ? error.errors.every(({ extensions }) => isLater(extensions?.code))
    : isLater(error.code, error);
}

const codes = [
  'NETWORK_ERROR',
  'TIMEOUT',
  'TOO_MANY_REQUESTS',
  'SERVICE_UNAVAILABLE',
  'IDEMPOTENCY_KEY_IN_USE',
];
/** Statuses of proxies, which send no codes. */
const statuses = [429, 502, 503, 504];

function isLater(
  code: string | undefined,
  { status }: { status?: number | undefined } = {},
): boolean {
  return (
    codes.includes(code ?? '') ||
    (code === 'UNEXPECTED_ANSWER' && statuses.includes(status ?? 0))
  );
}

const first = 200;
const most = 5_000;

/**
 * The pause (ms) before the next attempt: `Retry-After` plus jitter, so that
 * clients do not return all at once; otherwise exponential backoff with full
 * jitter.
 */
function pauseBefore(attempt: number, { retryAfter }: StoreError): number {
  const backoff = Math.random() * Math.min(most, first * 2 ** attempt);
  return retryAfter === undefined
    ? backoff
    : retryAfter * 1000 + Math.min(backoff, 1_000);
}

/** The attempts of one call, bounded in number and time. */
export class Attempts {
  readonly #end: number;
  readonly #repetitions: number;
  #made = 0;

  constructor(repetitions: number, milliseconds: number) {
    this.#repetitions = repetitions;
    this.#end = performance.now() + milliseconds;
  }

  /** The remaining time (ms). */
  get left(): number {
    return Math.max(0, this.#end - performance.now());
  }

  /**
   * Waits for the next attempt. @throws the error when it is permanent or no
   * attempt is left; the signal's reason
   */
  async next(error: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (!isTransient(error) || this.#made >= this.#repetitions) throw error;
    const pause = pauseBefore(this.#made++, error);
    if (pause >= this.left) throw error;
    await sleep(pause, signal);
  }
}

/** Timers treat a longer time as one millisecond. */
export const longestTimer = 2 ** 31 - 1;

/**
 * RFC 9110 section 10.2.3: seconds, or a date, relative to the response's
 * `Date`, because the local clock may be wrong.
 */
export function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  // `Date.parse` reads -1 and 1.5 as years.
  if (!/^[a-z]{3}/i.test(value)) return undefined;
  const seconds =
    (Date.parse(value) -
      (Date.parse(headers.get('date') ?? '') || Date.now())) /
    1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** @throws the signal's reason */
function sleep(
  milliseconds: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((done, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort);
        done();
      },
      Math.min(milliseconds, longestTimer),
    );
    signal?.addEventListener('abort', abort, { once: true });
  });
}
