import { late, outcomeUnknown } from '../../src/storage/database/errors.ts';
import { describe, expect, test } from '../support/jest.ts';
import { departures, names, refusalOf, told, withTrips } from '../support/trips.ts';

/** Whoever it is waits so many milliseconds from now. */
const patientFor = (milliseconds: number) => ({
  at: performance.now() + milliseconds,
  isOver: false,
});

describe('whoever waits has a deadline', () => {
  test('when it passes before the batch leaves, nothing was begun, and nothing is', async () => {
    const { trips, ask, inputs } = withTrips({ tooLate: outcomeUnknown });
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

  test('when it passes while a read is under way, whoever reads was late', async () => {
    const { ask } = withTrips();
    expect(await told(ask(1, patientFor(20)))).toEqual(refusalOf(late()));
  });

  test('when it passes while a write is under way, nobody knows: no Retry-After', async () => {
    const { ask } = withTrips({ tooLate: outcomeUnknown });
    expect(await told(ask(1, patientFor(20)))).toEqual(refusalOf(outcomeUnknown()));
  });

  test('those who travel with whoever was late get their answer', async () => {
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
