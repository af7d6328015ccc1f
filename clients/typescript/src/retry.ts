import { StoreError } from './store-error.ts';

/**
 * Whether the same request may succeed a little later. Every request of this client may be repeated: it only reads, or
 * has an `Idempotency-Key`, under which the service carries it out once, whatever became of the first attempt.
 */
function isTransient(error: unknown): error is StoreError {
  if (!(error instanceof StoreError)) return false;
  return error.errors ? error.errors.every(({ extensions }) => isLater(extensions?.code)) : isLater(error.code, error);
}

const codes = ['NETWORK_ERROR', 'TIMEOUT', 'TOO_MANY_REQUESTS', 'SERVICE_UNAVAILABLE', 'IDEMPOTENCY_KEY_IN_USE'];
/** Of proxies, which have no codes. */
const statuses = [429, 502, 503, 504];

function isLater(code: string | undefined, { status }: { status?: number | undefined } = {}): boolean {
  return codes.includes(code ?? '') || (code === 'UNEXPECTED_ANSWER' && statuses.includes(status ?? 0));
}

const first = 200;
const most = 5_000;

/**
 * How long to wait before the next attempt, in milliseconds: what the service said and a little more, so that not all
 * clients come back at once; else twice as long each time, at random ("full jitter").
 */
function pauseBefore(attempt: number, { retryAfter }: StoreError): number {
  const backoff = Math.random() * Math.min(most, first * 2 ** attempt);
  return retryAfter === undefined ? backoff : retryAfter * 1000 + Math.min(backoff, 1_000);
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

  /** In milliseconds. */
  get left(): number {
    return Math.max(0, this.#end - performance.now());
  }

  /** Waits for the next one. @throws the error when it will not pass, or there is no next one; the signal's reason */
  async next(error: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (!isTransient(error) || this.#made >= this.#repetitions) throw error;
    const pause = pauseBefore(this.#made++, error);
    if (pause >= this.left) throw error;
    await sleep(pause, signal);
  }
}

/** Of a longer time timers make a millisecond. */
export const longestTimer = 2 ** 31 - 1;

/** RFC 9110 section 10.2.3: seconds, or a date, which is counted from the answer's own, as our clock may be wrong. */
export function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  // `Date.parse` takes -1 and 1.5 for years.
  if (!/^[a-z]{3}/i.test(value)) return undefined;
  const seconds = (Date.parse(value) - (Date.parse(headers.get('date') ?? '') || Date.now())) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** @throws the signal's reason */
function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
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
