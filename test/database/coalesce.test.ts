import { expect, test } from '@jest/globals';
import { coalesce } from '../../src/database/coalesce.ts';

/** A round trip that answers when the test says so. */
interface Trip {
  inputs: number[];
  answer(outputs: Array<string | Error>): void;
  fail(error: Error): void;
}

function withTrips(limits: { maxBatch: number; maxInFlight: number }, isRetryable = (_error: unknown) => true) {
  const trips: Trip[] = [];
  const run = (inputs: number[]) =>
    new Promise<Array<string | Error>>((answer, fail) => trips.push({ inputs, answer, fail }));
  const ask = coalesce<number, string>(run, { patience: 60_000, ...limits }, isRetryable);
  return { trips, ask, inputs: () => trips.map((trip) => trip.inputs) };
}

/** Until everything that can leave has left. */
async function departures(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

const names = (inputs: number[]) => inputs.map((input) => `pet ${input}`);

test('inputs that arrive together leave together, and each gets its own answer', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 10, maxInFlight: 1 });
  const answers = Promise.all([ask(1), ask(2), ask(3)]);
  await departures();
  expect(inputs()).toEqual([[1, 2, 3]]);
  trips[0]?.answer(names([1, 2, 3]));
  expect(await answers).toEqual(['pet 1', 'pet 2', 'pet 3']);
});

test('an input never joins a batch that was already sent; it waits for the next', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 10, maxInFlight: 4 });
  const early = ask(1);
  await departures();
  const late = Promise.all([ask(2), ask(3)]);
  await departures();
  expect(inputs()).toEqual([[1]]);
  trips[0]?.answer(['pet 1']);
  expect(await early).toBe('pet 1');
  await departures();
  expect(inputs()).toEqual([[1], [2, 3]]);
  trips[1]?.answer(names([2, 3]));
  expect(await late).toEqual(['pet 2', 'pet 3']);
});

test('a batch is bounded; who does not fit leaves in the next, in order', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 2, maxInFlight: 1 });
  const answers = Promise.all([1, 2, 3, 4, 5].map(ask));
  for (let trip = 0; trip < 3; trip += 1) {
    await departures();
    expect(trips).toHaveLength(trip + 1);
    trips[trip]?.answer(names(trips[trip]?.inputs ?? []));
  }
  expect(inputs()).toEqual([[1, 2], [3, 4], [5]]);
  expect(await answers).toEqual(names([1, 2, 3, 4, 5]));
});

test('an error in the answer fails its own input alone', async () => {
  const { trips, ask } = withTrips({ maxBatch: 10, maxInFlight: 1 });
  const answers = Promise.allSettled([ask(1), ask(2), ask(3)]);
  await departures();
  const reason = new Error('no such pet');
  trips[0]?.answer(['pet 1', reason, 'pet 3']);
  expect(await answers).toEqual([
    { status: 'fulfilled', value: 'pet 1' },
    { status: 'rejected', reason },
    { status: 'fulfilled', value: 'pet 3' },
  ]);
});

test('a batch that fails for what one input holds is tried again one by one: the bad one fails alone', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 10, maxInFlight: 1 });
  const answers = Promise.allSettled([ask(1), ask(2)]);
  await departures();
  const reason = new Error('2 is bad');
  trips[0]?.fail(reason);
  await departures();
  trips[1]?.answer(['pet 1']);
  await departures();
  trips[2]?.fail(reason);
  expect(await answers).toEqual([
    { status: 'fulfilled', value: 'pet 1' },
    { status: 'rejected', reason },
  ]);
  expect(inputs()).toEqual([[1, 2], [1], [2]]);
});

test('a batch that fails for a reason that is nobody’s fault fails as a whole and is not repeated', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 10, maxInFlight: 1 }, () => false);
  const reason = new Error('the database is gone');
  const answers = Promise.allSettled([ask(1), ask(2)]);
  await departures();
  trips[0]?.fail(reason);
  expect(await answers).toEqual([
    { status: 'rejected', reason },
    { status: 'rejected', reason },
  ]);
  expect(inputs()).toEqual([[1, 2]]);
});

test('after a failure the next input leaves as usual', async () => {
  const { trips, ask } = withTrips({ maxBatch: 10, maxInFlight: 1 }, () => false);
  const failed = ask(1);
  await departures();
  trips[0]?.fail(new Error('the database is gone'));
  await expect(failed).rejects.toThrow('the database is gone');
  const next = ask(2);
  await departures();
  trips[1]?.answer(['pet 2']);
  expect(await next).toBe('pet 2');
});
