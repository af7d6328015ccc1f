import { type Answer, failureOf } from './answer.ts';
import { Attempts, longestTimer } from './retry.ts';
import { StoreError, unexpected } from './store-error.ts';

export interface TransportOptions {
  /**
   * The address of the service, without `/v1`: `http://127.0.0.1:4000`. In a
   * browser it may be relative.
   */
  url: string | URL;
  /**
   * An API key of the service; or a function that returns a key or token, and
   * is called for each attempt.
   */
  key: string | (() => string | Promise<string>);
  /** Maximum number of retries of a request; 4 by default. */
  retries?: number | undefined;
  /**
   * Time limit (ms) of a call with all attempts and pauses; 60,000 by default.
   */
  timeoutMs?: number | undefined;
  /** Time limit (ms) of one attempt; 30,000 by default. */
  attemptTimeoutMs?: number | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** Limits of one call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Overrides the store's `timeoutMs`. For `pets` it applies to each page. */
  timeoutMs?: number | undefined;
}

export interface StoreRequest {
  /** Relative to the address of the service. */
  path: string;
  headers?: Record<string, string>;
  /** A request with a body is a POST. */
  body?: string;
}

/**
 * Sends requests with the key to the service only, and retries them within
 * limits.
 */
export class Transport {
  readonly #base: URL;
  readonly #key: TransportOptions['key'];
  readonly #retries: number;
  readonly #timeoutMs: number;
  readonly #attemptTimeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor({
    url,
    key,
    retries = 4,
    timeoutMs = 60_000,
    attemptTimeoutMs = 30_000,
    fetch,
  }: TransportOptions) {
    this.#base = baseOf(url);
    this.#key = typeof key === 'string' ? checked(key) : key;
    this.#retries = retries;
    this.#timeoutMs = timeoutMs;
    this.#attemptTimeoutMs = attemptTimeoutMs;
    // Browsers require the global object as `this`. The late look-up lets
    // instrumentation replace it.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Whether a refused key may be followed by a valid one. */
  get renewsKey(): boolean {
    return typeof this.#key === 'function';
  }

  /** Creates the attempts of a call. @param most maximum number of retries */
  attempts(
    { timeoutMs = this.#timeoutMs }: CallOptions,
    most = this.#retries,
  ): Attempts {
    return new Attempts(most, timeoutMs);
  }

  /**
   * @param read converts a response, and throws for an unexpected one
   * @throws StoreError when the last attempt failed; the signal's reason when
   *   the caller aborted
   */
  async send<T>(
    request: StoreRequest,
    read: (answer: Answer) => T,
    options: CallOptions = {},
  ): Promise<T> {
    for (const attempts = this.attempts(options); ; ) {
      try {
        return read(
          await this.#answerTo(request, attempts.left, options.signal),
        );
      } catch (error) {
        await attempts.next(error, options.signal);
      }
    }
  }

  async #answerTo(
    request: StoreRequest,
    left: number,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const attempt = new Attempt(this.#base.origin, signal);
    const fetched = this.#fetched(request);
    try {
      const whole = async (ending: AbortSignal) =>
        answerOf(await fetched(ending));
      return await attempt.wait(Math.min(left, this.#attemptTimeoutMs), whole);
    } finally {
      attempt.end();
    }
  }

  /**
   * Yields the text of server-sent events as it arrives. A pause may be as long
   * as an attempt.
   *
   * @throws StoreError when the stream ends, because it has no regular end; the
   *   signal's reason
   */
  async *events(
    request: StoreRequest,
    signal?: AbortSignal,
    left = longestTimer,
  ): AsyncGenerator<string, void> {
    const attempt = new Attempt(this.#base.origin, signal);
    const fetched = this.#fetched(request);
    try {
      const response = await attempt.wait(
        Math.min(left, this.#attemptTimeoutMs),
        fetched,
      );
      if (
        !response.headers.get('content-type')?.startsWith('text/event-stream')
      ) {
        throw failureOf(
          await attempt.wait(this.#attemptTimeoutMs, () => answerOf(response)),
        );
      }
      const reader = response.body?.getReader();
      for (const decoder = new TextDecoder(); ; ) {
        const piece = await attempt.wait(this.#attemptTimeoutMs, async () =>
          reader?.read(),
        );
        if (!piece || piece.done)
          throw new StoreError(
            'NETWORK_ERROR',
            `${this.#base.origin} has ended the connection.`,
          );
        yield decoder.decode(piece.value, { stream: true });
      }
    } finally {
      attempt.end();
    }
  }

  #fetched({
    path,
    headers,
    body,
  }: StoreRequest): (ending: AbortSignal) => Promise<Response> {
    // Created here, because `fetch` reports an invalid header like a network
    // error.
    const sent = new Headers(headers);
    return async (signal) => {
      sent.set('authorization', `Bearer ${await this.#currentKey()}`);
      return this.#fetch(new URL(path, this.#base), {
        method: body === undefined ? 'GET' : 'POST',
        headers: sent,
        body: body ?? null,
        signal,
        redirect: 'manual',
      });
    };
  }

  async #currentKey(): Promise<string> {
    if (typeof this.#key === 'string') return this.#key;
    try {
      return checked(await this.#key());
    } catch (cause) {
      throw new StoreError(
        'NETWORK_ERROR',
        'The function for the key has failed.',
        { cause },
      );
    }
  }
}

/**
 * @throws TypeError for an impossible key, because the error message of `fetch`
 *   would contain it
 */
function checked(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new TypeError(
    'The key must be visible ASCII characters, without spaces.',
  );
}

/**
 * One request. It ends when the caller aborts, or when a step takes too long.
 */
class Attempt {
  readonly #origin: string;
  readonly #signal: AbortSignal | undefined;
  readonly #ending = new AbortController();
  // Not AbortSignal.any, which leaks memory on Node.js with a long-lived
  // signal.
  readonly #giveUp = () => this.#ending.abort(this.#signal?.reason);

  constructor(origin: string, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', this.#giveUp);
    this.#origin = origin;
    this.#signal = signal;
  }

  async wait<T>(
    most: number,
    work: (ending: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const milliseconds = Math.ceil(Math.min(most, longestTimer));
    const late = () =>
      this.#ending.abort(
        new StoreError(
          'TIMEOUT',
          `No answer from ${this.#origin} in ${milliseconds} ms.`,
        ),
      );
    const clock = setTimeout(late, milliseconds);
    try {
      return await work(this.#ending.signal);
    } catch (cause) {
      this.#ending.signal.throwIfAborted();
      if (cause instanceof StoreError) throw cause;
      throw new StoreError(
        'NETWORK_ERROR',
        `${this.#origin} cannot be reached, or broke off.`,
        { cause },
      );
    } finally {
      clearTimeout(clock);
    }
  }

  /** Releases the connection of a response that was not read completely. */
  end(): void {
    this.#signal?.removeEventListener('abort', this.#giveUp);
    this.#ending.abort();
  }
}

/**
 * @throws StoreError for a redirect, which could send the key to another host
 */
async function answerOf(response: Response): Promise<Answer> {
  const { status, headers, type } = response;
  // Browsers hide redirects: the status is 0.
  if (type !== 'opaqueredirect' && (status < 300 || status > 399)) {
    return { status, headers, text: await response.text() };
  }
  throw unexpected(
    'The answer is a redirect, which this client does not follow: is the URL the right one?',
    status,
  );
}

/** @throws StoreError unless the status is that of a success */
export function succeeded(answer: Answer): Answer {
  if (answer.status < 200 || answer.status > 299) throw failureOf(answer);
  return answer;
}

function baseOf(url: string | URL): URL {
  const base = new URL(url, globalThis.location?.href);
  if (!/^https?:$/.test(base.protocol))
    throw new TypeError('The URL must begin with http:// or https://.');
  if (base.username || base.password)
    throw new TypeError('The URL must not contain a name or a password.');
  base.search = '';
  base.hash = '';
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return base;
}
