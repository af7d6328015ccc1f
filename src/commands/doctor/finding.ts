import { withTimeout } from '../../runtime/with-timeout.ts';

/**
 * - `ok`: as it should be
 * - `warning`: it serves, but not as somebody may expect
 * - `failure`: it does not start, or does not serve
 * - `skipped`: it could not be looked at, because of a failure that is told elsewhere
 */
export type State = 'ok' | 'warning' | 'failure' | 'skipped';

/** What was found about one thing. */
export interface Finding {
  /** What was looked at. */
  check: string;
  state: State;
  /** What is the case. */
  found: string;
  /** What to do about it. */
  remedy?: string;
}

export type Result = Omit<Finding, 'check'>;

export const ok = (found: string): Result => ({ state: 'ok', found });
export const warning = (found: string, remedy: string): Result => ({ state: 'warning', found, remedy });
export const failure = (found: string, remedy: string): Result => ({ state: 'failure', found, remedy });
export const skipped = (found: string): Result => ({ state: 'skipped', found });

/** How long (ms) one check may take. Most have shorter clocks of their own, and say what has not answered. */
const patience = 15_000;

/** Looks at one thing. What is thrown is a failure, told in its own words. */
export async function look(
  check: string,
  work: () => Promise<Result> | Result,
  remedy = 'see docs/operate.md',
): Promise<Finding> {
  try {
    const late = () => new Error(`This has not come to an end within ${patience / 1000} seconds.`);
    return { check, ...(await withTimeout(patience, Promise.resolve().then(work), late)) };
  } catch (error) {
    return { check, ...failure(reasonOf(error), remedy) };
  }
}

/** The words of the driver, or of the operating system: they are behind what a client would be told. */
export function reasonOf(error: unknown): string {
  const { message, cause, errors } = error as Error & { errors?: unknown[] };
  if (cause) return reasonOf(cause);
  if (errors) return errors.map(reasonOf).join('; ');
  return message || String(error);
}
