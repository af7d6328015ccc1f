import { windowSeconds } from '../../access/limits/limiter.ts';
import type { Meter } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import type { Quota, QuotaState } from './quota.ts';

/**
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
 * `qu` allows registered units only, and ours is not registered (section
 * 3.1.2), so a parameter with a prefix names it.
 */
function rateLimitHeaders(
  { limit, remaining, reset }: QuotaState,
  { name, items }: Quota['service'],
): Record<string, string> {
  const unit = `${name}-unit="operations+${items}"`;
  return {
    'ratelimit-policy': `"key";q=${limit};w=${windowSeconds};${unit}`,
    ratelimit: `"key";r=${remaining};t=${reset}`,
  };
}

/**
 * Charges the operations of one request one after another, like separate
 * requests: a unit for each operation (a REST call, a GraphQL root field) and
 * one for each item that it reads or writes. So aliases and large pages bring
 * no advantage.
 */
export class QuotaMeter implements Meter {
  /** The quota after the last operation; undefined before the first. */
  #state: QuotaState | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #release: (() => Promise<void>) | undefined;

  /** @param call counts the items that the request has read or written */
  constructor(
    private readonly quota: Quota,
    private readonly callerId: number,
    private readonly call: { readonly items: number },
  ) {}

  /**
   * Runs an operation, which costs one unit plus one per item that it reads or
   * writes, unless the whole request is charged.
   *
   * @param mayCost its maximum cost, charged in advance so that concurrent
   *   operations cannot spend the same units; the unused rest is returned
   * @throws StoreError TOO_MANY_REQUESTS
   */
  run<Result>(mayCost: number, operation: () => Promise<Result>) {
    const isReserved = this.#release !== undefined;
    if (isReserved) return operation();
    const result = this.#turn.then(async () => {
      const release = await this.#reserveCost(mayCost);
      return operation().finally(release);
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /**
   * Charges the maximum cost of the whole request, until `release` returns the
   * unused rest.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async reserve(mayCost: number) {
    this.#release = await this.#reserveCost(mayCost);
  }

  async release(): Promise<Record<string, string>> {
    await this.#release?.();
    this.#release = undefined;
    if (!this.#state) return {};
    return rateLimitHeaders(this.#state, this.quota.service);
  }

  /**
   * Charges units for good.
   *
   * @throws StoreError TOO_MANY_REQUESTS
   */
  async charge(units: number) {
    const returnUnusedUnits = await this.#reserveUnits(units);
    await returnUnusedUnits(0);
  }

  /** @returns a function that settles the cost of what was read and written */
  async #reserveCost(mayCost: number) {
    const before = this.call.items;
    const returnUnusedUnits = await this.#reserveUnits(mayCost);
    return async () => {
      const cost = 1 + this.call.items - before;
      const changed = await returnUnusedUnits(mayCost - cost);
      this.#state = changed ?? this.#state;
    };
  }

  async #reserveUnits(units: number) {
    const reservation = await this.quota.reserve(this.callerId, units);
    const { state, returnUnusedUnits, isUsedUp } = reservation;
    this.#state = state;
    if (returnUnusedUnits) return returnUnusedUnits;
    const ofMinute = `${this.quota.perMinute} units of this minute`;
    if (isUsedUp)
      throw overQuota(`This key has used its ${ofMinute}.`, state.reset);
    throw overQuota(
      `What is left of this key's ${ofMinute} is taken by requests under way.`,
      1,
    );
  }
}

function overQuota(message: string, seconds: number) {
  const headers = { 'retry-after': `${seconds}` };
  return new StoreError('TOO_MANY_REQUESTS', message, { headers });
}
