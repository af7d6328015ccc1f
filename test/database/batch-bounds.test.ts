import { busy } from '../../src/storage/database/errors.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { departures, names, refusalOf, told, withTrips } from '../support/trips.ts';

describe('what waits is bounded; beyond it nobody is taken', () => {
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
    await eventually(async () => batches.isStuck);
    expect(await told(ask(3))).toEqual(refusalOf(busy()));
    trips[0]?.answer(['pet 1']);
    await departures();
    expect(batches.isStuck).toBe(false);
    trips[1]?.answer(['pet 2']);
    expect(await Promise.all([first, second])).toEqual(names([1, 2]));
  });

  test('but not by the age of those who are tried again: they have waited elsewhere', async () => {
    const { batches, trips, ask } = withTrips({ maxAge: 20 });
    const answers = [ask(1), ask(2)];
    await departures();
    const arrived = performance.now();
    await eventually(async () => performance.now() > arrived + 40);
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
