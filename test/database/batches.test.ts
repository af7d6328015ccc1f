import { mock } from 'node:test';
import { Call } from '#engine/call.js';
import { Batches, type BatchOptions } from '#engine/database/batches.js';
import { FairQueue } from '#engine/database/fair-queue.js';
import { describe, expect, test } from '../support/jest.ts';

/** A round trip that ends when the test ends it. */
interface Trip {
  inputs: number[];
  answer(outputs: Array<string | Error>): void;
  fail(error: Error): void;
}

const patient = new Call();
const patientFor = (milliseconds: number) => new Call(milliseconds);

/**
 * Batches whose round trips the test controls. By default no time limit is
 * short enough to be reached.
 */
function withTrips(options: Partial<BatchOptions> = {}) {
  const trips: Trip[] = [];
  const run = (inputs: number[]) =>
    new Promise<Array<string | Error>>((answer, fail) =>
      trips.push({ inputs, answer, fail }),
    );
  const name = { collection: 'trip', operation: 'go' };
  const bounds = {
    ...name,
    maxBatch: 10,
    maxInFlight: 1,
    blockTime: 60_000,
    maxWaiting: 1000,
    maxAge: 60_000,
  };
  const batches = new Batches<number, string>(run, {
    ...bounds,
    isRetryable: () => true,
    ...options,
  });
  return {
    batches,
    trips,
    add: (input: number, deadline = patient) => batches.add(input, deadline),
    inputs: () => trips.map((trip) => trip.inputs),
    /** Answers a number of trips from this one on, each after its departure. */
    async answerFrom(first: number, count = 1) {
      for (let at = first; at < first + count; at += 1) {
        await departures();
        trips[at]?.answer(names(trips[at]?.inputs ?? []));
      }
      await departures();
    },
  };
}

/** Waits until every trip that can depart has departed. */
async function departures(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((done) => setTimeout(done, 1));
}

const names = (inputs: number[]) => inputs.map((input) => `pet ${input}`);

/**
 * @returns the output of an input, or its error and whether the outcome is
 *   unknown
 */
const outcomeOf = (output: Promise<string>): Promise<unknown> =>
  output.catch(({ name, message, isOutcomeUnknown }) => ({
    name,
    message,
    isOutcomeUnknown,
  }));
const refusal = (message: string, isOutcomeUnknown = false) => ({
  name: 'Unavailable',
  message,
  isOutcomeUnknown,
});
const busy = refusal(
  'Too many requests wait for the database; try again shortly.',
);
const late = refusal('The database did not answer in time; try again shortly.');
const unknown = refusal(
  'The database did not say whether this was stored: it may have been. Look for it before you send it again.',
  true,
);

test('a batch waits for the one in flight unless it is full, and nothing joins one that was sent', async () => {
  const { add, inputs, answerFrom } = withTrips({
    maxBatch: 2,
    maxInFlight: 4,
  });
  const outputs = [add(1)];
  await departures();
  outputs.push(add(2));
  await departures();
  expect(inputs()).toEqual([[1]]);
  outputs.push(add(3), add(4));
  await departures();
  expect(inputs()).toEqual([[1], [2, 3]]);
  await answerFrom(0, 3);
  expect(await Promise.all(outputs)).toEqual(names([1, 2, 3, 4]));
  expect(inputs()).toEqual([[1], [2, 3], [4]]);
});

test('of a failed batch of writes halves are retried, until the bad input is alone', async () => {
  const { add, trips, inputs, answerFrom } = withTrips({ isWrite: true });
  const outputs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((input) => add(input));
  const settled = Promise.allSettled(outputs);
  const reason = new Error('2 is bad');
  for (const at of [0, 1, 2, 3, 4, 5, 6]) {
    await departures();
    if (trips[at]?.inputs.includes(2)) trips[at]?.fail(reason);
    else await answerFrom(at);
  }
  await departures();
  expect(inputs()).toEqual([
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [0, 1, 2, 3, 4],
    [0, 1, 2],
    [0, 1],
    [2],
    [3, 4],
    [5, 6, 7, 8, 9],
  ]);
  const outcomes = await settled;
  expect(outcomes[2]).toEqual({ status: 'rejected', reason });
  expect(outcomes[9]).toEqual({ status: 'fulfilled', value: 'pet 9' });
});

test('the bad writes of one caller delay no other by more than a turn, and its own keep their order', async () => {
  const { batches, trips, inputs } = withTrips({ isWrite: true });
  const [bad, good] = [1, 2].map((id) =>
    Object.assign(new Call(), { caller: { id } }),
  );
  const add = (input: number, call: Call | undefined) =>
    batches.add(input, call as Call).catch((reason) => reason);
  const outputs = [add(1, bad), add(2, bad), add(3, bad), add(100, good)];
  const reason = new Error('those of one caller are bad');
  await departures();
  outputs.push(add(4, bad), add(101, good));
  for (let at = 0; at < 9; at += 1) {
    const trip = trips[at];
    if (trip?.inputs.some((input) => input < 100)) trip.fail(reason);
    else trip?.answer(names(trip.inputs));
    await departures();
  }
  expect(inputs()).toEqual([
    [1, 100, 2, 3],
    // By caller, in turn with those of callers without retries.
    [1, 2, 3],
    [100],
    [101],
    [1, 2],
    [1],
    [2],
    [3],
    [4],
  ]);
  const late = [reason, 'pet 101'];
  const first = [reason, reason, reason, 'pet 100'];
  expect(await Promise.all(outputs)).toEqual([...first, ...late]);
});

describe('a lock or a conflict', () => {
  const callers = [1, 2, 3, 4].map((id) =>
    Object.assign(new Call(), { caller: { id } }),
  );
  const contended = (code: string) =>
    Object.assign(new Error('this is a test'), { code });

  test.each(['55P03', '40001', '40P01'])(
    'of one caller fails all of its writes, and no other: %s',
    async (code) => {
      const { batches, trips, inputs, answerFrom } = withTrips({
        isWrite: true,
      });
      const outputs = [1, 2, 3, 4].flatMap((input) =>
        callers.slice(0, 2).map(async (call, at) => {
          const output = batches.add(at * 100 + input, call as never);
          return await output.catch((reason) => reason);
        }),
      );
      const reason = contended(code);
      await departures();
      trips[0]?.fail(reason);
      await departures();
      trips[1]?.fail(reason);
      await answerFrom(2);
      const [all, ...parts] = inputs();
      expect(all).toHaveLength(8);
      expect(parts).toEqual([
        [1, 2, 3, 4],
        [101, 102, 103, 104],
      ]);
      const both = [1, 2, 3, 4].flatMap((n) => [reason, `pet ${100 + n}`]);
      expect(await Promise.all(outputs)).toEqual(both);
    },
  );

  test('of the writes of one caller fails them at once', async () => {
    const { add, trips, inputs } = withTrips({ isWrite: true });
    const outputs = Promise.allSettled([add(1), add(2)]);
    const reason = contended('55P03');
    await departures();
    trips[0]?.fail(reason);
    const rejected = { status: 'rejected', reason };
    expect(await outputs).toEqual([rejected, rejected]);
    expect(inputs()).toEqual([[1, 2]]);
  });

  test('that fails a third statement fails the other parts unsent, to be sent again', async () => {
    const { batches, trips, inputs } = withTrips({ isWrite: true });
    const outputs = callers.map((call, at) =>
      outcomeOf(batches.add(at, call as never)),
    );
    const reason = contended('55P03');
    for (const at of [0, 1, 2]) {
      await departures();
      trips[at]?.fail(reason);
    }
    const failed = { name: 'Error', message: 'this is a test' };
    const outcomes = await Promise.all(outputs);
    expect(outcomes).toEqual([failed, failed, late, late]);
    expect(inputs()).toEqual([[0, 1, 2, 3], [0], [1]]);
  });

  test('of a part that waits for its turn until its deadline is too near fails it unsent', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const { batches, trips, inputs, answerFrom } = withTrips({ isWrite: true });
    const impatient = Object.assign(patientFor(120), { caller: { id: 9 } });
    const outputs = [callers[0], impatient, callers[1]].map((call, at) =>
      outcomeOf(batches.add(at, call as never)),
    );
    await departures();
    now = 50;
    trips[0]?.fail(new Error('one is bad'));
    await departures();
    now = 90;
    await answerFrom(1, 2);
    mock.restoreAll();
    expect(await Promise.all(outputs)).toEqual(['pet 0', late, 'pet 2']);
    expect(inputs()).toEqual([[0, 1, 2], [0], [2]]);
  });
});

test('a batch of writes that are all bad takes two trips for each', async () => {
  const { add, trips } = withTrips({ isWrite: true });
  const outputs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((input) => add(input));
  const settled = Promise.allSettled(outputs);
  const reason = new Error('it is bad');
  for (let at = 0; at < trips.length || at === 0; at += 1) {
    await departures();
    trips[at]?.fail(reason);
    await departures();
  }
  const outcomes = await settled;
  expect(outcomes).toEqual(outputs.map(() => ({ status: 'rejected', reason })));
  expect(trips).toHaveLength(2 * 10 - 1);
});

test.each([
  { isWrite: true, failures: 2 },
  { isWrite: false, failures: 1 },
])(
  'a retried input has waited to leave, not in failed batches: $isWrite',
  async ({ isWrite, failures }) => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const { trips, add, answerFrom } = withTrips({ isWrite });
    const call = new Call();
    const outputs = [add(1, call), add(2), add(3), add(4)];
    for (let at = 0; at < failures; at += 1) {
      await departures();
      now += 100;
      trips[at]?.fail(new Error('one is bad'));
    }
    await answerFrom(failures, 4);
    mock.restoreAll();
    expect(await Promise.all(outputs)).toEqual(names([1, 2, 3, 4]));
    expect(call.waited).toBe(0);
  },
);

test('inputs of a failed batch of reads are retried alone, in parallel, before later ones: the bad input fails alone', async () => {
  const { trips, add, inputs, answerFrom } = withTrips({ maxInFlight: 4 });
  const [good, bad] = [add(1), add(2)];
  const refused = bad.catch((reason) => reason);
  await departures();
  const later = Promise.allSettled([add(3), add(4)]);
  const reason = new Error('2 is bad');
  trips[0]?.fail(reason);
  await departures();
  expect(inputs()).toEqual([[1, 2], [1], [2]]);
  trips[2]?.fail(reason);
  expect(await refused).toBe(reason);
  await answerFrom(1);
  expect(await good).toBe('pet 1');
  // An error among the outputs fails its own input alone, too.
  trips[3]?.answer(['pet 3', reason]);
  expect(await later).toEqual([
    { status: 'fulfilled', value: 'pet 3' },
    { status: 'rejected', reason },
  ]);
  expect(inputs()).toEqual([[1, 2], [1], [2], [3, 4]]);
});

test('a batch whose failure no input has caused fails as a whole, is not retried, and delays no other', async () => {
  const { trips, add, inputs, answerFrom } = withTrips({
    isRetryable: () => false,
  });
  const reason = new Error('the database is gone');
  const outputs = Promise.allSettled([add(1), add(2)]);
  await departures();
  trips[0]?.fail(reason);
  expect(await outputs).toEqual(Array(2).fill({ status: 'rejected', reason }));
  const next = add(3);
  await answerFrom(1);
  expect(await next).toBe('pet 3');
  expect(inputs()).toEqual([[1, 2], [3]]);
});

describe('waiting inputs are bounded; beyond the bound inputs are refused', () => {
  test.each<[string, Partial<BatchOptions>]>([
    ['number', { maxWaiting: 1 }],
    ['age', { maxAge: 20 }],
  ])('by %s', async (_, bound) => {
    const { batches, add, answerFrom } = withTrips(bound);
    const first = add(1);
    await departures();
    const second = add(2);
    if (bound.maxAge) await until(() => batches.isStuck);
    expect(await outcomeOf(add(3))).toEqual(busy);
    await answerFrom(0);
    expect(batches.isStuck).toBe(false);
    const fourth = add(4);
    await answerFrom(1, 2);
    expect(await Promise.all([first, second, fourth])).toEqual(
      names([1, 2, 4]),
    );
  });

  test('but not by the age of retried inputs, which have waited in a batch', async () => {
    const { batches, trips, add, answerFrom } = withTrips({ maxAge: 20 });
    const outputs = [add(1), add(2)];
    await departures();
    const arrived = performance.now();
    await until(() => performance.now() > arrived + 40);
    trips[0]?.fail(new Error('2 is bad'));
    await departures();
    expect(batches.isStuck).toBe(false);
    outputs.push(add(3));
    await answerFrom(1, 3);
    expect(await Promise.all(outputs)).toEqual(names([1, 2, 3]));
  });
});

describe('callers take turns', () => {
  const callOf = (id: number) => {
    const call = new Call();
    call.caller = { id, name: `${id}`, scopes: ['read'] };
    return call;
  };

  test('so the input of one does not wait for all inputs of another', async () => {
    const { add, inputs, answerFrom } = withTrips({ maxBatch: 4 });
    const [greedy, other] = [callOf(1), callOf(2)];
    const outputs = Array.from({ length: 9 }, (_, n) => add(n, greedy));
    outputs.push(add(100, other), add(101, other));
    await departures();
    expect(inputs()).toEqual([[0, 100, 1, 101]]);
    await answerFrom(0, 3);
    expect(inputs()).toEqual([
      [0, 100, 1, 101],
      [2, 3, 4, 5],
      [6, 7, 8],
    ]);
    await Promise.all(outputs);
  });

  test('and one who has too many inputs, or old ones, is refused alone', async () => {
    const { batches, add, answerFrom } = withTrips({ maxWaiting: 6 });
    const [greedy, other] = [callOf(1), callOf(2)];
    const first = add(0, greedy);
    await departures();
    const outputs = [1, 2, 3].map((n) => add(n, greedy));
    expect(await outcomeOf(add(4, greedy))).toEqual(busy);
    outputs.push(add(5, other));
    expect(batches.isStuck).toBe(false);
    await answerFrom(0, 2);
    expect(await Promise.all([first, ...outputs])).toEqual(
      names([0, 1, 2, 3, 5]),
    );
  });

  test('and fewer reads are in flight while round trips are long', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const { add, inputs, answerFrom } = withTrips({
      maxBatch: 4,
      minWindow: 2,
    });
    const outputs = [];
    const sizes = [];
    for (const duration of [1, 1, 200, 200, 1, 1]) {
      outputs.push(...Array.from({ length: 8 }, (_, n) => add(n)));
      await departures();
      now += duration;
      sizes.push(inputs().at(-1)?.length);
      await answerFrom(sizes.length - 1);
    }
    await answerFrom(sizes.length, 20);
    await Promise.all(outputs);
    mock.restoreAll();
    expect(sizes).toEqual([2, 4, 4, 4, 2, 4]);
  });

  test.each([
    ['fewer than none', 8, 1, [2, 4, 2]],
    ['none', 7, 0, [2, 4]],
  ])(
    'and a batch that is due does not depart when a long round trip has left room for %s',
    async (_room, count, more, before) => {
      let now = 0;
      mock.method(performance, 'now', () => now);
      const options = { maxBatch: 4, minWindow: 2, maxInFlight: 4 };
      const { add, inputs, answerFrom, trips } = withTrips(options);
      const addAll = (many: number) =>
        Array.from({ length: many }, (_, n) => add(n));
      const outputs = addAll(count);
      await answerFrom(0, before.length);
      outputs.push(...addAll(more));
      await departures();
      now += 150;
      outputs.push(...addAll(4));
      await departures();
      outputs.push(...addAll(4));
      trips[before.length]?.answer(['long']);
      await departures();
      const sizes = inputs().map(({ length }) => length);
      expect(sizes).toEqual([...before, 1, 4]);
      await answerFrom(before.length + 1, 9);
      await Promise.all(outputs);
      mock.restoreAll();
    },
  );

  test('and a batch that hangs does not keep others from departing', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const options = { minWindow: 2, maxInFlight: 2, blockTime: 1 };
    const { add, inputs, answerFrom } = withTrips(options);
    const outputs = [1, 2, 3].map((n) => add(n));
    await departures();
    now += 1000;
    await until(() => inputs().length === 2);
    await answerFrom(0, 2);
    await Promise.all(outputs);
    mock.restoreAll();
    expect(inputs()).toEqual([[1, 2], [3]]);
  });

  test('a write is not sent again when its deadline is too near for a trip as long as the last', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const { add, inputs, trips, answerFrom } = withTrips({ isWrite: true });
    const outputs = [99, 101, 1000].map((left) => add(left, patientFor(left)));
    const outcomes = Promise.all(outputs.map(outcomeOf));
    await departures();
    now = 50;
    trips[0]?.fail(new Error('One is at fault.'));
    await answerFrom(1, 2);
    mock.restoreAll();
    const told = 'The database did not answer in time; try again shortly.';
    const seen = [refusal(told), ...names([101, 1000])];
    expect(await outcomes).toEqual(seen);
    expect(inputs()).toEqual([[99, 101, 1000], [101], [1000]]);
  });

  test('and more again when the database has become slower for good', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    const { add, inputs, answerFrom } = withTrips({
      maxBatch: 4,
      minWindow: 2,
    });
    const outputs = Array.from({ length: 150 }, (_, n) => add(n));
    await answerFrom(0);
    for (let at = 1; at < 60; at += 1) {
      await departures();
      now += 150;
      await answerFrom(at);
    }
    await Promise.all(outputs);
    mock.restoreAll();
    expect(inputs().at(-2)).toHaveLength(4);
  });
});

describe('an input has a deadline', () => {
  test('when it passes, or the client disconnects, before the batch departs, the input is not sent, and its outcome is known', async () => {
    const { add, inputs, answerFrom } = withTrips({ isWrite: true });
    const first = add(1);
    await departures();
    const connection = { destroyed: false };
    const gone = new Call(Number.POSITIVE_INFINITY, connection);
    const refused = [
      outcomeOf(add(2, gone)),
      outcomeOf(add(3, patientFor(20))),
    ];
    const last = add(4);
    expect(await refused[1]).toEqual(late);
    connection.destroyed = true;
    await answerFrom(0, 2);
    expect(await refused[0]).toEqual(late);
    expect(await Promise.all([first, last])).toEqual(names([1, 4]));
    expect(inputs()).toEqual([[1], [4]]);
  });

  test.each([
    ['a read is under way, the read is late', {}, late],
    [
      'a write is under way, the outcome is unknown',
      { isWrite: true },
      unknown,
    ],
  ])(
    'when it passes while %s, and others of the batch get their outputs',
    async (_, options, refused) => {
      const { add, answerFrom } = withTrips(options);
      const [impatient, patient] = [add(1, patientFor(20)), add(2)];
      expect(await outcomeOf(impatient)).toEqual(refused);
      await answerFrom(0);
      expect(await patient).toBe('pet 2');
    },
  );
});

test('a write that waits for a connection until its deadline is never sent, and its outcome is known', async () => {
  for (const isLastWanted of [false, true]) {
    const turn = Promise.withResolvers<void>();
    const { add, inputs, answerFrom } = withTrips({
      isWrite: true,
      share: async (send) => {
        await turn.promise;
        await send();
      },
    });
    const refused = add(1, patientFor(20));
    const others = isLastWanted ? [add(2)] : [];
    expect(await outcomeOf(refused)).toEqual(late);
    turn.resolve();
    await departures();
    expect(inputs()).toEqual(isLastWanted ? [[2]] : []);
    await answerFrom(0);
    expect(await Promise.all(others)).toEqual(isLastWanted ? ['pet 2'] : []);
    const next = add(3);
    await answerFrom(inputs().length);
    expect(await next).toBe('pet 3');
  }
});

describe('a fair queue', () => {
  test('gives one of each caller in turn, also across batches', () => {
    const queue = new FairQueue<string>(100);
    for (const n of [1, 2, 3, 4]) queue.push('a', `a${n}`);
    for (const n of [1, 2]) queue.push('b', `b${n}`);
    queue.push(undefined, 'nobody');
    expect(queue.take(2)).toEqual(['a1', 'b1']);
    expect(queue.heads).toEqual(['nobody', 'a2', 'b2']);
    expect(queue.take(4)).toEqual(['nobody', 'a2', 'b2', 'a3']);
    expect([queue.length, queue.take(9), queue.length]).toEqual([1, ['a4'], 0]);
  });

  test('has a place for each caller, and for what has left', () => {
    const queue = new FairQueue<number>(4);
    expect([1, 2, 3].map((n) => queue.push('a', n))).toEqual([
      true,
      true,
      false,
    ]);
    expect([queue.push('b', 4), queue.push('b', 5)]).toEqual([true, false]);
    queue.filter((n) => n !== 1);
    expect([queue.length, queue.headOf('a'), queue.headOf('c')]).toEqual([
      2,
      2,
      undefined,
    ]);
    queue.take(2);
    expect([6, 7].map((n) => queue.push('c', n))).toEqual([true, true]);
  });
});

test('an input that counts for several leaves those of others room', async () => {
  const weigh = (input: number, known: Set<unknown>) => {
    const isKnown = known.has(input);
    known.add(input);
    return isKnown ? 1 : input;
  };
  const { batches, inputs, answerFrom } = withTrips({ maxBatch: 10, weigh });
  const [long, short] = [1, 2].map((id) =>
    Object.assign(new Call(), { caller: { id } }),
  );
  const add = (input: number, call: Call | undefined) =>
    batches.add(input, call as Call);
  const outputs = [add(1, long)];
  await departures();
  // Equal ones count for one.
  for (const input of [5, 5, 5, 4, 4]) outputs.push(add(input, long));
  for (const input of [1, 2]) outputs.push(add(input, short));
  await answerFrom(0, 4);
  expect(inputs()).toEqual([[1], [5, 1, 5, 2, 5], [4, 4]]);
  expect(await Promise.all(outputs)).toHaveLength(8);
});

test('the time that inputs of a call wait together counts once', () => {
  const call = new Call();
  for (const [since, leftAt] of [
    [0, 10],
    [0, 10],
    [5, 12],
    [20, 25],
  ] as const)
    call.batched(since, leftAt, 2);
  expect(call).toMatchObject({ waited: 17, batch: 2 });
});
