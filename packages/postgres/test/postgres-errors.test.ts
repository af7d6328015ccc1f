import {
  DatabaseUnavailable,
  isWorthAnotherServer,
  isWorthAnotherTry,
  leavesOutcomeUnknown,
  unavailable,
} from '../src/postgres-errors.ts';
import { describe, expect, test } from './support.ts';

/** What pg throws: an error of PostgreSQL with its SQLSTATE, of the system with its name, or of its own with words alone. */
function thrown(code: string | undefined, message = 'this is a test'): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

const lostWorker = thrown('XX000', 'failure on connection marked as essential: 127.0.0.1:5433');
const stalePlan = thrown('0A000', 'cached plan must not change result type');

describe('what passes is no fault of ours', () => {
  test.each([
    ...['EMFILE', 'ENFILE', 'ECONNREFUSED', 'EAI_AGAIN'].map((code) => thrown(code)),
    ...['08006', '25006', '26000', '28000', '28P01', '3D000', '40001', '53300', '55P03', '57014'].map((code) =>
      thrown(code),
    ),
    ...[stalePlan, lostWorker],
  ])('$code is temporary: it is worth another try', (cause) => {
    const message = 'The database cannot be reached; try again shortly.';
    expect(unavailable(cause)).toBeInstanceOf(DatabaseUnavailable);
    expect(unavailable(cause)).toMatchObject({ message, isOutcomeUnknown: false, cause });
  });

  test.each(['42P01', '42703'])('so is %s, which says that it is not migrated', (code) => {
    const message = 'The database has not been migrated.';
    expect(unavailable(thrown(code))).toMatchObject({ message, isOutcomeUnknown: false });
  });

  test.each(['22P02', '23505', '42501', '54000', '0A000', 'XX000', 'EACCES', undefined])('%s is none of it', (code) => {
    expect(unavailable(thrown(code))).toBeUndefined();
  });
});

describe('whether a write that failed may have been carried out', () => {
  test.each([
    ['a reset', thrown('ECONNRESET')],
    ['an end of the connection', thrown(undefined, 'Connection terminated unexpectedly')],
    ['a pooler’s word that it lost PostgreSQL', thrown('08006')],
    ['PostgreSQL’s own word that it does not know', thrown('40003')],
    ['the loss of a worker node of Citus', lostWorker],
  ])('nobody knows after %s', (_, error) => expect(leavesOutcomeUnknown(error)).toBe(true));

  test.each([
    thrown(undefined, 'Client has encountered a connection error and is not queryable'),
    ...['23505', '40001', '57014', 'XX000'].map((code) => thrown(code)),
  ])('it was not after $code', (error) => expect(leavesOutcomeUnknown(error)).toBe(false));
});

describe('whether a read that failed as one of a batch is tried again alone', () => {
  test.each(['22021', '53200', '54000', '55P03', '57014', 'XX000'])('after %s it is', (code) => {
    expect(isWorthAnotherTry(thrown(code))).toBe(true);
    expect(isWorthAnotherTry(unavailable(thrown(code)) ?? thrown(code))).toBe(true);
  });

  test.each(['08006', '28P01', '3D000', '40001', '53300', '57P01', 'ECONNRESET', undefined])(
    'after %s it is not: all would only fail again',
    (code) => {
      expect(isWorthAnotherTry(thrown(code))).toBe(false);
      expect(isWorthAnotherTry(unavailable(thrown(code)) ?? thrown(code))).toBe(false);
    },
  );
});

test.each([
  ['it has lost the connection', thrown('ECONNRESET'), true],
  ['it shuts down', thrown('57P01'), true],
  ['the statement took too long', thrown('57014'), false],
  ['it fell silent', thrown('ETIMEDOUT'), false],
  ['the data are at fault', thrown('22P02'), false],
])('whether another server is asked what one did not answer: %s', (_, error, expected) => {
  expect(isWorthAnotherServer(error)).toBe(expected);
});
