import { Batches, type BatchOptions, type Deadline } from '../src/batches.ts';
import { describe, expect, test } from './support.ts';

/** A round trip that answers when the test says so. */
interface Trip {
  inputs: number[];
  answer(outputs: Array<string | Error>): void;
  fail(error: Error): void;
}

const patient: Deadline = { at: Number.POSITIVE_INFINITY, isOver: false };
const patientFor = (milliseconds: number) => ({ at: performance.now() + milliseconds, isOver: false });

/** Batches whose round trips are the test's; unless stated nobody waits long enough for any clock. */
function withTrips(options: Partial<BatchOptions> = {}) {
  const trips: Trip[] = [];
  const run = (inputs: number[]) =>
    new Promise<Array<string | Error>>((answer, fail) => trips.push({ inputs, answer, fail }));
  const name = { collection: 'trip', operation: 'go' };
  const bounds = { ...name, maxBatch: 10, maxInFlight: 1, blockTime: 60_000, maxWaiting: 1000, maxAge: 60_000 };
  const batches = new Batches<number, string>(run, { ...bounds, isRetryable: () => true, ...options });
  return {
    batches,
    trips,
    ask: (input: number, deadline = patient) => batches.add(input, deadline),
    inputs: () => trips.map((trip) => trip.inputs),
    /** Answers the trips from this one on, each when it has left. */
    async answerFrom(first: number, count = 1) {
      for (let at = first; at < first + count; at += 1) {
        await departures();
        trips[at]?.answer(names(trips[at]?.inputs ?? []));
      }
      await departures();
    },
  };
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
const told = (answer: Promise<string>): Promise<unknown> =>
  answer.catch(({ name, message, isOutcomeUnknown }) => ({ name, message, isOutcomeUnknown }));
const refusal = (message: string, isOutcomeUnknown = false) => ({
  name: 'DatabaseUnavailable',
  message,
  isOutcomeUnknown,
});
const busy = refusal('Too many requests wait for the database; try again shortly.');
const late = refusal('The database did not answer in time; try again shortly.');
const unknown = refusal(
  'The database did not say whether this was stored: it may have been. Look for it before you send it again.',
  true,
);

test('a batch waits for the one in flight unless it is full, and nothing joins one that was sent', async () => {
  const { ask, inputs, answerFrom } = withTrips({ maxBatch: 2, maxInFlight: 4 });
  const answers = [ask(1)];
  await departures();
  answers.push(ask(2));
  await departures();
  expect(inputs()).toEqual([[1]]);
  answers.push(ask(3), ask(4));
  await departures();
  expect(inputs()).toEqual([[1], [2, 3]]);
  await answerFrom(0, 3);
  expect(await Promise.all(answers)).toEqual(names([1, 2, 3, 4]));
  expect(inputs()).toEqual([[1], [2, 3], [4]]);
});

test('inputs of a failed batch are tried again alone, side by side, before later ones: the bad one fails alone', async () => {
  const { trips, ask, inputs, answerFrom } = withTrips({ maxInFlight: 4 });
  const [good, bad] = [ask(1), ask(2)];
  const refused = bad.catch((reason) => reason);
  await departures();
  const later = Promise.allSettled([ask(3), ask(4)]);
  const reason = new Error('2 is bad');
  trips[0]?.fail(reason);
  await departures();
  expect(inputs()).toEqual([[1, 2], [1], [2]]);
  trips[2]?.fail(reason);
  expect(await refused).toBe(reason);
  await answerFrom(1);
  expect(await good).toBe('pet 1');
  // An error in the answer fails its own input alone, too.
  trips[3]?.answer(['pet 3', reason]);
  expect(await later).toEqual([
    { status: 'fulfilled', value: 'pet 3' },
    { status: 'rejected', reason },
  ]);
  expect(inputs()).toEqual([[1, 2], [1], [2], [3, 4]]);
});

test('a batch that fails by no input’s fault fails as a whole, is not repeated, and holds up no other', async () => {
  const { trips, ask, inputs, answerFrom } = withTrips({ isRetryable: () => false });
  const reason = new Error('the database is gone');
  const answers = Promise.allSettled([ask(1), ask(2)]);
  await departures();
  trips[0]?.fail(reason);
  expect(await answers).toEqual(Array(2).fill({ status: 'rejected', reason }));
  const next = ask(3);
  await answerFrom(1);
  expect(await next).toBe('pet 3');
  expect(inputs()).toEqual([[1, 2], [3]]);
});

describe('what waits is bounded; beyond it inputs are refused', () => {
  test.each<[string, Partial<BatchOptions>]>([
    ['number', { maxWaiting: 1 }],
    ['age', { maxAge: 20 }],
  ])('by %s', async (_, bound) => {
    const { batches, ask, answerFrom } = withTrips(bound);
    const first = ask(1);
    await departures();
    const second = ask(2);
    await until(() => batches.isStuck);
    expect(await told(ask(3))).toEqual(busy);
    await answerFrom(0);
    expect(batches.isStuck).toBe(false);
    const fourth = ask(4);
    await answerFrom(1, 2);
    expect(await Promise.all([first, second, fourth])).toEqual(names([1, 2, 4]));
  });

  test('but not by the age of retried inputs: they have waited elsewhere', async () => {
    const { batches, trips, ask, answerFrom } = withTrips({ maxAge: 20 });
    const answers = [ask(1), ask(2)];
    await departures();
    const arrived = performance.now();
    await until(() => performance.now() > arrived + 40);
    trips[0]?.fail(new Error('2 is bad'));
    await departures();
    expect(batches.isStuck).toBe(false);
    answers.push(ask(3));
    await answerFrom(1, 3);
    expect(await Promise.all(answers)).toEqual(names([1, 2, 3]));
  });
});

describe('an input has a deadline', () => {
  test('when it passes, or the client goes, before the batch leaves, nothing was begun, and nothing is', async () => {
    const { ask, inputs, answerFrom } = withTrips({ isWrite: true });
    const first = ask(1);
    await departures();
    const gone = { at: Number.POSITIVE_INFINITY, isOver: false };
    const refused = [told(ask(2, gone)), told(ask(3, patientFor(20)))];
    const last = ask(4);
    expect(await refused[1]).toEqual(late);
    gone.isOver = true;
    await answerFrom(0, 2);
    expect(await refused[0]).toEqual(late);
    expect(await Promise.all([first, last])).toEqual(names([1, 4]));
    expect(inputs()).toEqual([[1], [4]]);
  });

  test.each([
    ['a read is under way, the read was late', {}, late],
    ['a write is under way, the outcome is unknown', { isWrite: true }, unknown],
  ])('when it passes while %s, and others of the batch get their answers', async (_, options, refused) => {
    const { ask, answerFrom } = withTrips(options);
    const [impatient, patient] = [ask(1, patientFor(20)), ask(2)];
    expect(await told(impatient)).toEqual(refused);
    await answerFrom(0);
    expect(await patient).toBe('pet 2');
  });
});
