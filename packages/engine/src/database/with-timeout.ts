/** Of `setTimeout`, in milliseconds. */
const longestDelay = 2 ** 31 - 1;

/**
 * Waits for work with a timeout.
 *
 * @param late creates the error when it expires
 */
export async function withTimeout<Result>(
  milliseconds: number,
  work: Promise<Result>,
  late: () => Error,
) {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const delay = Math.min(milliseconds, longestDelay);
  const timer = setTimeout(() => reject(late()), delay);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
