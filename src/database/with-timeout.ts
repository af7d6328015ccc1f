/** Of `setTimeout`, in milliseconds. */
const longestDelay = 2 ** 31 - 1;

/**
 * Waits for work with a timeout. @param late creates the error when it expires
 */
export function withTimeout<Result>(
  milliseconds: number,
  work: Promise<Result>,
  late: () => Error,
): Promise<Result> {
  let timer: NodeJS.Timeout;
  const timeout = new Promise<never>((_, reject) => {
    const delay = Math.min(milliseconds, longestDelay);
    timer = setTimeout(() => reject(late()), delay);
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}
