import { setTimeout as sleep } from 'node:timers/promises';

export interface RetryOptions {
  /** Average pause (ms) before the next attempt; jitter changes it by up to a half. */
  pause(attempt: number): number;
  /** Whether to retry after this failure. @param attempt from 1 */
  isWorthIt(error: unknown, attempt: number): boolean;
  /** Called before each pause. */
  onFailure?(error: unknown, attempt: number): void;
}

/** Repeats failing work with pauses. @throws the error of the last attempt */
export async function retry<Result>(
  work: () => Promise<Result>,
  { pause, isWorthIt, onFailure }: RetryOptions,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isWorthIt(error, attempt)) throw error;
      onFailure?.(error, attempt);
      await sleep(pause(attempt) * (0.5 + Math.random()));
    }
  }
}
