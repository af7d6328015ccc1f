import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Repeats work that failed for a temporary reason.
 *
 * @param pauseAfter returns the average length (ms) of the pause before the
 *   next attempt; undefined to give up
 * @throws the error of the last attempt
 */
export async function retry<T>(
  work: () => Promise<T>,
  pauseAfter: (error: unknown, attempt: number) => number | undefined,
) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const pause = pauseAfter(error, attempt);
      if (pause === undefined) throw error;
      await sleep(pause * (0.5 + Math.random()));
    }
  }
}
