import { busy, late, outcomeUnknown, unavailable } from '../../packages/postgres/src/errors.ts';
import { type StoreError, storeErrorOf } from '../../src/errors.ts';
import { expect, test } from '../support/jest.ts';

const cause = Object.assign(new Error('this is a test'), { code: 'ECONNREFUSED' });

test('what passes is no fault of ours: 503, with the advice to try again', () => {
  const failure = storeErrorOf(unavailable(cause));
  const message = 'The database cannot be reached; try again shortly.';
  expect(failure?.toBody()).toEqual({ code: 'SERVICE_UNAVAILABLE', status: 503, message });
  expect(failure).toMatchObject({ headers: { 'retry-after': '1' }, isOutcomeUnknown: false, cause });
});

test.each(['42P01', '42703'])('%s is 503, too, and says that it is not migrated', (code) => {
  const message = 'The database has not been migrated.';
  const failure = storeErrorOf(unavailable(Object.assign(new Error(), { code })));
  expect(failure?.toBody()).toEqual({ code: 'SERVICE_UNAVAILABLE', status: 503, message });
});

test('only a client that may send it again is told when', () => {
  const saidOf = (error: Error) => {
    const { status, message, headers, isOutcomeUnknown } = storeErrorOf(error) as StoreError;
    return { status, message, headers, isOutcomeUnknown };
  };
  const again = { status: 503, headers: { 'retry-after': '1' }, isOutcomeUnknown: false };
  expect(saidOf(busy())).toEqual({ ...again, message: 'Too many requests wait for the database; try again shortly.' });
  expect(saidOf(late())).toEqual({ ...again, message: 'The database did not answer in time; try again shortly.' });
  expect(saidOf(outcomeUnknown(cause))).toEqual({
    status: 503,
    headers: {},
    isOutcomeUnknown: true,
    message:
      'The database did not say whether this was stored: it may have been. Look for it before you send it again.',
  });
  expect(storeErrorOf(outcomeUnknown(cause))?.cause).toBe(cause);
});

test.each([cause, undefined, 'text'])('no other error is for clients', (error) => {
  expect(storeErrorOf(error)).toBeUndefined();
});
