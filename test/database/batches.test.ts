import { expect, test } from '../support/jest.ts';
import { departures, names, withTrips } from '../support/trips.ts';

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

test('a batch is bounded; who does not fit leaves in the next, in order', async () => {
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

test('those who are tried again alone do not wait for each other: a slow one is slow alone', async () => {
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

test('those who are tried again alone go before those who came later, and nobody goes with them', async () => {
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

test('a batch that fails for a reason that is nobody’s fault fails as a whole and is not repeated', async () => {
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
