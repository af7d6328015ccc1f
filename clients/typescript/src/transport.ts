import { type Answer, failureOf } from './answer.ts';
import { isTransient, longestTimer, pauseBefore, sleep } from './retry.ts';
import { StoreError, unexpected } from './store-error.ts';

export interface TransportOptions {
  /** Where the service is, without `/v1`: `http://127.0.0.1:4000`. In a browser it may be relative. */
  url: string | URL;
  /** An API key of the service. */
  key: string;
  /** How often a request is repeated at most; 4. */
  retries?: number | undefined;
  /** How long a call may take with all its attempts and pauses, in milliseconds; 60,000. */
  timeoutMs?: number | undefined;
  /** How long one attempt may take; 30,000. */
  attemptTimeoutMs?: number | undefined;
  /** In the place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** Limits of one call. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** In the place of the store's `timeoutMs`. Of `pets`, for each page. */
  timeoutMs?: number | undefined;
}

export interface StoreRequest {
  /** Below the address of the service. */
  path: string;
  headers?: Record<string, string>;
  /** With a body it is a POST. */
  body?: string;
}

/** Sends requests with the key, repeats them within limits, and keeps the key with the service. */
export class Transport {
  readonly #base: URL;
  readonly #key: string;
  readonly #retries: number;
  readonly #timeoutMs: number;
  readonly #attemptTimeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor({ url, key, retries = 4, timeoutMs = 60_000, attemptTimeoutMs = 30_000, fetch }: TransportOptions) {
    this.#base = baseOf(url);
    // `fetch` would say the whole key in its own message.
    if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError('The key must be visible ASCII characters, without spaces.');
    this.#key = key;
    this.#retries = retries;
    this.#timeoutMs = timeoutMs;
    this.#attemptTimeoutMs = attemptTimeoutMs;
    // Browsers want it called on nothing else; and looked up late, so that instrumentation may replace it.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /**
   * @param read takes what it needs from an answer, and throws what it refuses
   * @throws StoreError when the last attempt failed; the signal's reason when the caller gave up
   */
  async send<T>(
    request: StoreRequest,
    read: (answer: Answer) => T,
    { signal, timeoutMs }: CallOptions = {},
  ): Promise<T> {
    const end = performance.now() + (timeoutMs ?? this.#timeoutMs);
    for (let attempt = 0; ; attempt++) {
      try {
        return read(await this.#attempt(request, Math.max(0, end - performance.now()), signal));
      } catch (error) {
        if (!isTransient(error) || attempt >= this.#retries) throw error;
        const pause = pauseBefore(attempt, error);
        if (performance.now() + pause >= end) throw error;
        await sleep(pause, signal);
      }
    }
  }

  async #attempt({ path, headers, body }: StoreRequest, left: number, signal?: AbortSignal): Promise<Answer> {
    signal?.throwIfAborted();
    // Here, as `fetch` would refuse what is no header as if it were the network.
    const sent = new Headers({ ...headers, authorization: `Bearer ${this.#key}` });
    const milliseconds = Math.ceil(Math.min(left, this.#attemptTimeoutMs, longestTimer));
    const { origin } = this.#base;
    const ending = new AbortController();
    const late = () => ending.abort(new StoreError('TIMEOUT', `No answer from ${origin} in ${milliseconds} ms.`));
    const clock = setTimeout(late, milliseconds);
    // Not AbortSignal.any: on Node.js each leaves something at a signal that outlives it.
    const giveUp = () => ending.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp);
    try {
      const response = await this.#fetch(new URL(path, this.#base), {
        method: body === undefined ? 'GET' : 'POST',
        headers: sent,
        body: body ?? null,
        signal: ending.signal,
        redirect: 'manual',
      });
      return { status: response.status, headers: response.headers, text: await textOf(response) };
    } catch (cause) {
      ending.signal.throwIfAborted();
      if (cause instanceof StoreError) throw cause;
      throw new StoreError('NETWORK_ERROR', `${origin} cannot be reached, or broke off.`, { cause });
    } finally {
      clearTimeout(clock);
      signal?.removeEventListener('abort', giveUp);
    }
  }
}

/** @throws StoreError for a redirect: it would take the key to somebody else */
function textOf(response: Response): Promise<string> {
  const { status, type } = response;
  // Browsers tell nothing of a redirect, its status is 0.
  if (type !== 'opaqueredirect' && (status < 300 || status > 399)) return response.text();
  throw unexpected('The answer is a redirect, which this client does not follow: is the URL the right one?', status);
}

/** @throws StoreError unless the status is that of a success */
export function succeeded(answer: Answer): Answer {
  if (answer.status < 200 || answer.status > 299) throw failureOf(answer);
  return answer;
}

function baseOf(url: string | URL): URL {
  const base = new URL(url, globalThis.location?.href);
  if (!/^https?:$/.test(base.protocol)) throw new TypeError('The URL must begin with http:// or https://.');
  if (base.username || base.password) throw new TypeError('The URL must not contain a name or a password.');
  base.search = '';
  base.hash = '';
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return base;
}
