import fc from 'fast-check';
import { cases, expect, test } from '../../support/jest.ts';
import type { Store } from '../../support/store.ts';
import { heapUsed } from '../support/heap.ts';

/**
 * FUZZ_REQUESTS (21000 in all; a tenth in `npm test`) and FUZZ_SEED (random)
 * come from the environment.
 */
const total = cases(21_000, 'FUZZ_REQUESTS');
const seed = Number(
  process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31),
);

export interface Fuzz<Request> {
  name: string;
  /** The share of all requests. */
  share: number;
  request: fc.Arbitrary<Request>;
  /**
   * Sends a request and checks the response. @returns outcomes to count.
   * @throws Error when it breaks the contract
   */
  send(request: Request, store: Store): Promise<string[]>;
  show(request: Request): string;
}

/**
 * How many bytes the heap may grow in a run, after a collection. Caches have
 * bounds, leaks have none.
 */
const allowedGrowth = 96 * 1024 * 1024;

/**
 * Defines the test that sends random requests, many at once, to a running
 * service and checks every response.
 */
export function fuzz<Request>(
  store: Store,
  { name, share, request, send, show }: Fuzz<Request>,
): void {
  const wanted = Math.ceil(total * share);

  test(`${wanted} ${name} get responses of the contract, FUZZ_SEED=${seed}`, async () => {
    const outcomes: Record<string, number> = {};
    let sent = 0;
    let warm = 0;
    const batches = fc.array(request, {
      minLength: 1,
      maxLength: 40,
      size: 'max',
    });
    const property = fc.asyncProperty(batches, async (batch) => {
      sent += batch.length;
      const results = await Promise.all(
        batch.map((request) =>
          send(request, store).catch((error: Error) => {
            throw new Error(`${error.message}\n  of ${show(request)}`, {
              cause: error,
            });
          }),
        ),
      );
      for (const outcome of results.flat())
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      // The first half fills the caches.
      if (warm === 0 && sent >= wanted / 2) warm = heapUsed();
    });
    // A batch has some fifteen requests. The report of fast-check would show
    // bodies of megabytes.
    const { failed, errorInstance } = await fc.check(property, {
      seed,
      numRuns: Math.ceil(wanted / 14),
    });
    if (failed)
      throw new Error(
        `after ${sent} requests: ${(errorInstance as Error).message}`,
        { cause: errorInstance },
      );
    const growth = heapUsed() - warm;
    const mebibytes = (growth / 1024 / 1024).toFixed(1);
    console.log(
      `${sent} ${name} (seed ${seed}): ${JSON.stringify(outcomes)}, heap ${mebibytes} MiB more`,
    );
    expect(growth).toBeLessThan(allowedGrowth);
  }, 600_000);
}
