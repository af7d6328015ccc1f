/** Waits for work, but not longer than this. @param late makes the error for work that takes longer */
export function within<Result>(milliseconds: number, work: Promise<Result>, late: () => Error): Promise<Result> {
  let clock: NodeJS.Timeout;
  const tooLate = new Promise<never>((_, reject) => {
    clock = setTimeout(() => reject(late()), milliseconds);
  });
  return Promise.race([work, tooLate]).finally(() => clearTimeout(clock));
}
