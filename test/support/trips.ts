import type { Deadline } from '../../src/deadline.ts';
import type { StoreError } from '../../src/errors.ts';
import { Batches, type BatchOptions } from '../../src/storage/records/batches.ts';

/** A round trip that answers when the test says so. */
export interface Trip {
  inputs: number[];
  answer(outputs: Array<string | Error>): void;
  fail(error: Error): void;
}

/** Batches whose round trips are the test's; unless stated nobody waits long enough for any clock. */
export function withTrips(options: Partial<BatchOptions> = {}) {
  const trips: Trip[] = [];
  const run = (inputs: number[]) =>
    new Promise<Array<string | Error>>((answer, fail) => trips.push({ inputs, answer, fail }));
  const name = { collection: 'trip', operation: 'go' };
  const bounds = { ...name, maxBatch: 10, maxInFlight: 1, patience: 60_000, maxWaiting: 1000, maxAge: 60_000 };
  const batches = new Batches<number, string>(run, { ...bounds, isRetryable: () => true, ...options });
  const ask = (input: number, deadline?: Deadline) => batches.add(input, deadline);
  return { batches, trips, ask, inputs: () => trips.map((trip) => trip.inputs) };
}

/** Until everything that can leave has left. */
export async function departures(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

export const names = (inputs: number[]) => inputs.map((input) => `pet ${input}`);

/** What an input was told: its answer, or why there is none and whether it may be asked again. */
export function told(answer: Promise<string>): Promise<unknown> {
  return answer.catch(refusalOf);
}

export const refusalOf = ({ code, message, headers }: StoreError) => ({ code, message, headers });
