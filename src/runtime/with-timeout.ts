/** Waits for work, at most this long. @param late makes the error for work that takes longer */
export function withTimeout<Result>(milliseconds: number, work: Promise<Result>, late: () => Error): Promise<Result> {
  let timer: NodeJS.Timeout;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}
