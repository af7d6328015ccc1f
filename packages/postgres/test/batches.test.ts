import { Batches, type BatchOptions, type Deadline } from '../src/batches.ts';
import { busy, type DatabaseUnavailable, late, outcomeUnknown } from '../src/errors.ts';
import { describe, expect, test } from './support.ts';

/** A round trip that answers when the test says so. */
interface Trip {
  inputs: number[];
  answer(outputs: Array<string | Error>): void;
  fail(error: Error): void;
}

const patient: Deadline = { at: Number.POSITIVE_INFINITY, isOver: false };

/** Batches whose round trips are the test's; unless stated nobody waits long enough for any clock. */
function withTrips(options: Partial<BatchOptions> = {}) {
  const trips: Trip[] = [];
  const run = (inputs: number[]) =>
    new Promise<Array<string | Error>>((answer, fail) => trips.push({ inputs, answer, fail }));
  const name = { collection: 'trip', operation: 'go' };
  const bounds = { ...name, maxBatch: 10, maxInFlight: 1, blockTime: 60_000, maxWaiting: 1000, maxAge: 60_000 };
  const batches = new Batches<number, string>(run, { ...bounds, isRetryable: () => true, ...options });
  const ask = (input: number, deadline: Deadline = patient) => batches.add(input, deadline);
  return { batches, trips, ask, inputs: () => trips.map((trip) => trip.inputs) };
}

/** Until everything that can leave has left. */
async function departures(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((done) => setTimeout(done, 1));
}

const names = (inputs: number[]) => inputs.map((input) => `pet ${input}`);

/** What an input was told: its answer, or why there is none and whether it may be asked again. */
function told(answer: Promise<string>): Promise<unknown> {
  return answer.catch(refusalOf);
}

const refusalOf = ({ name, message, isOutcomeUnknown }: DatabaseUnavailable) => ({ name, message, isOutcomeUnknown });

test('inputs that arrive together leave together, and each gets its own answer', async () => {
  const { trips, ask, inputs } = withTrips();
  const answers = Promise.all([ask(1), ask(2), ask(3)]);
  await departures();
  expect(inputs()).toEqual([[1, 2, 3]]);
  trips[0]?.answer(names([1, 2, 3]));
  expect(await answers).toEqual(['pet 1', 'pet 2', 'pet 3']);
});

test('an input never joins a batch that was already sent; it waits for the next', async () => {
  const { trips, ask, inputs } = withTrips({ maxInFlight: 4 });
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

test('a batch is bounded; further inputs leave in the next, in order', async () => {
  const { trips, ask, inputs } = withTrips({ maxBatch: 2 });
  const answers = Promise.all([1, 2, 3, 4, 5].map((input) => ask(input)));
  for (let trip = 0; trip < 3; trip += 1) {
    await departures();
    expect(trips).toHaveLength(trip + 1);
    trips[trip]?.answer(names(trips[trip]?.inputs ?? []));
  }
  expect(inputs()).toEqual([[1, 2], [3, 4], [5]]);
  expect(await answers).toEqual(names([1, 2, 3, 4, 5]));
});

test('an error in the answer fails its own input alone', async () => {
  const { trips, ask } = withTrips();
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
  const { trips, ask, inputs } = withTrips();
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

test('inputs that are retried alone do not wait for each other: a slow one is slow alone', async () => {
  const { trips, ask, inputs } = withTrips({ maxInFlight: 4 });
  const [slow, ...others] = [1, 2, 3].map((input) => ask(input));
  await departures();
  trips[0]?.fail(new Error('it took too long'));
  await departures();
  expect(inputs()).toEqual([[1, 2, 3], [1], [2], [3]]);
  trips[2]?.answer(['pet 2']);
  trips[3]?.answer(['pet 3']);
  expect(await Promise.all(others)).toEqual(['pet 2', 'pet 3']);
  const reason = new Error('it took too long again');
  trips[1]?.fail(reason);
  await expect(slow).rejects.toBe(reason);
});

test('inputs that are retried alone go before later ones, and travel alone', async () => {
  const { trips, ask, inputs } = withTrips();
  const answers = Promise.all([1, 2].map((input) => ask(input)));
  await departures();
  const late = Promise.all([3, 4].map((input) => ask(input)));
  trips[0]?.fail(new Error('it took too long'));
  for (const trip of [1, 2, 3]) {
    await departures();
    trips[trip]?.answer(names(trips[trip]?.inputs ?? []));
  }
  expect(inputs()).toEqual([[1, 2], [1], [2], [3, 4]]);
  expect(await answers).toEqual(['pet 1', 'pet 2']);
  expect(await late).toEqual(['pet 3', 'pet 4']);
});

test('a batch that fails for a reason that is no input’s fault fails as a whole and is not repeated', async () => {
  const { trips, ask, inputs } = withTrips({ isRetryable: () => false });
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
  const { trips, ask } = withTrips({ isRetryable: () => false });
  const failed = ask(1);
  await departures();
  trips[0]?.fail(new Error('the database is gone'));
  await expect(failed).rejects.toThrow('the database is gone');
  const next = ask(2);
  await departures();
  trips[1]?.answer(['pet 2']);
  expect(await next).toBe('pet 2');
});

describe('what waits is bounded; beyond it inputs are refused', () => {
  test('by number', async () => {
    const { batches, trips, ask, inputs } = withTrips({ maxWaiting: 2 });
    const answers = [ask(1)];
    await departures();
    answers.push(ask(2), ask(3));
    expect(batches.isStuck).toBe(true);
    expect(await told(ask(4))).toEqual(refusalOf(busy()));
    trips[0]?.answer(['pet 1']);
    await departures();
    expect(batches.isStuck).toBe(false);
    answers.push(ask(5));
    trips[1]?.answer(['pet 2', 'pet 3']);
    await departures();
    trips[2]?.answer(['pet 5']);
    expect(await Promise.all(answers)).toEqual(names([1, 2, 3, 5]));
    expect(inputs()).toEqual([[1], [2, 3], [5]]);
  });

  test('by age', async () => {
    const { batches, trips, ask } = withTrips({ maxAge: 20 });
    const first = ask(1);
    await departures();
    const second = ask(2);
    await until(() => batches.isStuck);
    expect(await told(ask(3))).toEqual(refusalOf(busy()));
    trips[0]?.answer(['pet 1']);
    await departures();
    expect(batches.isStuck).toBe(false);
    trips[1]?.answer(['pet 2']);
    expect(await Promise.all([first, second])).toEqual(names([1, 2]));
  });

  test('but not by the age of retried inputs: they have waited elsewhere', async () => {
    const { batches, trips, ask } = withTrips({ maxAge: 20 });
    const answers = [ask(1), ask(2)];
    await departures();
    const arrived = performance.now();
    await until(() => performance.now() > arrived + 40);
    trips[0]?.fail(new Error('2 is bad'));
    await departures();
    expect(batches.isStuck).toBe(false);
    answers.push(ask(3));
    for (const [trip, output] of [
      [1, 'pet 1'],
      [2, 'pet 2'],
      [3, 'pet 3'],
    ] as const) {
      trips[trip]?.answer([output]);
      await departures();
    }
    expect(await Promise.all(answers)).toEqual(names([1, 2, 3]));
  });
});

/** Whoever it is waits so many milliseconds from now. */
const patientFor = (milliseconds: number) => ({
  at: performance.now() + milliseconds,
  isOver: false,
});

describe('an input has a deadline', () => {
  test('when it passes before the batch leaves, nothing was begun, and nothing is', async () => {
    const { trips, ask, inputs } = withTrips({ isWrite: true });
    const first = ask(1);
    await departures();
    const second = ask(2, patientFor(20));
    const third = ask(3);
    expect(await told(second)).toEqual(refusalOf(late()));
    trips[0]?.answer(['pet 1']);
    await departures();
    trips[1]?.answer(['pet 3']);
    expect(await Promise.all([first, third])).toEqual(names([1, 3]));
    expect(inputs()).toEqual([[1], [3]]);
  });

  test('when it passes while a read is under way, the read was late', async () => {
    const { ask } = withTrips();
    expect(await told(ask(1, patientFor(20)))).toEqual(refusalOf(late()));
  });

  test('when it passes while a write is under way, the outcome is unknown', async () => {
    const { ask } = withTrips({ isWrite: true });
    expect(await told(ask(1, patientFor(20)))).toEqual(refusalOf(outcomeUnknown()));
  });

  test('inputs of the same batch as a late one get their answers', async () => {
    const { trips, ask } = withTrips();
    const [impatient, patient] = [ask(1, patientFor(20)), ask(2)];
    expect(await told(impatient)).toEqual(refusalOf(late()));
    trips[0]?.answer(names([1, 2]));
    expect(await patient).toBe('pet 2');
  });
});

test('what was asked by a client that has gone before it left does not leave', async () => {
  const { trips, ask, inputs } = withTrips();
  const first = ask(1);
  await departures();
  const gone = { ...patientFor(60_000), isOver: false };
  const [second, third] = [told(ask(2, gone)), ask(3)];
  gone.isOver = true;
  trips[0]?.answer(['pet 1']);
  await departures();
  trips[1]?.answer(['pet 3']);
  expect(await Promise.all([first, third])).toEqual(names([1, 3]));
  expect(await second).toEqual(refusalOf(late()));
  expect(inputs()).toEqual([[1], [3]]);
});
