import {
  codeOf,
  failureOf,
  isConflict,
  isConnectionLoss,
  isDataError,
  isStalePlan,
  isUnsupported,
  isWorthAnotherTry,
  leavesOutcomeUnknown,
  reasonOf,
  unavailable,
} from '#engine/database/postgres-errors.js';
import { Unavailable } from '#engine/errors.js';
import { describe, expect, test } from '../support/jest.ts';

/**
 * An error of pg: PostgreSQL's with its SQLSTATE, the system's with its name,
 * or pg's own with a message alone.
 */
function thrown(code: string | undefined, message = 'this is a test'): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

const lostWorker = thrown(
  'XX000',
  'failure on connection marked as essential: 127.0.0.1:5433',
);
const lostByLibpq = [
  'SSL SYSCALL error: EOF detected',
  'SSL connection has been closed unexpectedly',
  'server closed the connection unexpectedly',
].map((message) => thrown('XX000', message));
const stalePlan = Object.assign(
  thrown('0A000', 'gecachter Plan darf den Ergebnistyp nicht ändern'),
  { routine: 'RevalidateCachedQuery' },
);
/** Without `allow_connections`, or the right to connect. */
const refusedSessions = ['55000', '42501'].map((code) =>
  Object.assign(thrown(code), { routine: 'CheckMyDatabase' }),
);

describe('temporary errors', () => {
  test.each([
    ...['EMFILE', 'ENFILE', 'ECONNREFUSED', 'EAI_AGAIN', 'EACCES'].map((code) =>
      thrown(code),
    ),
    ...['ENETDOWN', 'EPROTO', 'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR'].map(
      (code) => thrown(code),
    ),
    ...['CERT_HAS_EXPIRED', 'HOSTNAME_MISMATCH'].map((code) => thrown(code)),
    thrown(undefined, 'There was an error establishing an SSL connection'),
    ...['08006', '26000', '28000', '28P01', '3D000', '53300'].map((code) =>
      thrown(code),
    ),
    ...[stalePlan, lostWorker, ...lostByLibpq, ...refusedSessions],
  ])('$code is temporary: the request is worth another try', (cause) => {
    const message = 'The database cannot be reached; try again shortly.';
    expect(unavailable(cause)).toBeInstanceOf(Unavailable);
    expect(unavailable(cause)).toMatchObject({
      message,
      isOutcomeUnknown: false,
      cause,
    });
  });

  const connect = { syscall: 'connect' };
  test.each<[string, object, string]>([
    ['53100', {}, 'write now'],
    ['25006', {}, 'write now'],
    ['25P03', {}, 'answer in time'],
    ['25P04', {}, 'answer in time'],
    ['40001', {}, 'answer in time'],
    ['55P03', {}, 'answer in time'],
    ['57014', {}, 'answer in time'],
    // A statement that PostgreSQL does not cancel, because a pooler dropped its
    // timeout.
    ['ETIMEDOUT', {}, 'answer in time'],
    ['ETIMEDOUT', connect, 'be reached'],
    ['ETIMEDOUT', { errors: [connect] }, 'be reached'],
  ])('%s %j is temporary: the database cannot %s', (code, members, what) => {
    const message = `The database cannot ${what}; try again shortly.`;
    const error = Object.assign(thrown(code), members);
    expect(unavailable(error)).toMatchObject({
      message,
      isOutcomeUnknown: false,
    });
  });

  test.each(['42P01', '42703'])(
    '%s is temporary: the database is not migrated',
    (code) => {
      const message = 'The database has not been migrated.';
      expect(unavailable(thrown(code))).toMatchObject({
        message,
        isOutcomeUnknown: false,
      });
    },
  );

  test.each([
    '22P02',
    '23505',
    '42501',
    '54000',
    '0A000',
    'XX000',
    'ERR_INVALID_ARG_TYPE',
    undefined,
  ])('%s is not one', (code) => {
    expect(unavailable(thrown(code))).toBeUndefined();
  });
});

test.each(['GetNewTransactionId', 'GetNewMultiXactId'])(
  'without further transactions (%s) the database cannot write now, and no input is at fault',
  (routine) => {
    const error = Object.assign(thrown('54000'), { routine });
    expect(unavailable(error)).toMatchObject({
      message: 'The database cannot write now; try again shortly.',
    });
    expect(isWorthAnotherTry(error, 'writes')).toBe(false);
  },
);

describe('the outcome of a failed write', () => {
  test.each([
    ['a reset', thrown('ECONNRESET')],
    [
      'an end of the connection',
      thrown(undefined, 'Connection terminated unexpectedly'),
    ],
    ['a pooler’s error that it lost PostgreSQL', thrown('08006')],
    ['PostgreSQL’s error that it does not know', thrown('40003')],
    ['silence', thrown('ETIMEDOUT', 'PostgreSQL stopped responding')],
    ...[lostWorker, ...lostByLibpq].map(
      (error) => [`a Citus worker: ${error.message}`, error] as const,
    ),
  ])('is unknown after %s', (_, error) =>
    expect(leavesOutcomeUnknown(error)).toBe(true),
  );

  test.each([
    thrown(
      undefined,
      'Client has encountered a connection error and is not queryable',
    ),
    ...['23505', '40001', '57014', 'XX000'].map((code) => thrown(code)),
  ])('is known after $code: nothing was written', (error) =>
    expect(leavesOutcomeUnknown(error)).toBe(false),
  );
});

test.each(['23505', '40001', '40P01', '55P03', 'XX000'])(
  'a write that failed in a batch is retried in parts after %s of a row',
  (code) => {
    const where = 'while locking tuple (0,1) in relation "bill"';
    const error = Object.assign(thrown(code), { where });
    const told = unavailable(error) ?? error;
    expect(isWorthAnotherTry(told, 'writes')).toBe(true);
  },
);

const ofAll = ['08006', '40003', '53100', '57014', '57P01', 'ECONNRESET'];
test.each([...ofAll, '55P03'])(
  'a write that failed in a batch is not retried after %s',
  (code) => {
    const told = unavailable(thrown(code)) ?? thrown(code);
    expect(isWorthAnotherTry(told, 'writes')).toBe(false);
  },
);

describe('a read that failed in a batch', () => {
  test.each(['22021', '53200', '54000', '55P03', '57014', 'XX000'])(
    'is retried alone after %s',
    (code) => {
      expect(isWorthAnotherTry(thrown(code), 'reads')).toBe(true);
      expect(
        isWorthAnotherTry(unavailable(thrown(code)) ?? thrown(code), 'reads'),
      ).toBe(true);
    },
  );

  test.each([
    '08006',
    '28P01',
    '3D000',
    '40001',
    '53300',
    '57P01',
    'ECONNRESET',
    undefined,
  ])('is not retried after %s, because every read would fail again', (code) => {
    expect(isWorthAnotherTry(thrown(code), 'reads')).toBe(false);
    expect(
      isWorthAnotherTry(unavailable(thrown(code)) ?? thrown(code), 'reads'),
    ).toBe(false);
  });
});

/** What one error means to each of its readers. */
test.each<[what: string, error: Error, meaning: object]>([
  [
    'a category that is no number',
    thrown('22P02'),
    { isDataError: true, type: '22' },
  ],
  ['a name that is taken', thrown('23505'), { isDataError: true, type: '23' }],
  ['a deadlock', thrown('40P01'), { isConflict: true, type: '40' }],
  ['a column of another type', stalePlan, { isStalePlan: true, type: '0A' }],
  [
    'a statement that Citus lacks',
    thrown('0A000'),
    { isUnsupported: true, type: '0A' },
  ],
  [
    'a password that has changed',
    thrown('28P01'),
    { isConnectionLoss: true, type: '28' },
  ],
  [
    'a shutdown of PostgreSQL',
    thrown('57P01'),
    { isConnectionLoss: true, type: '57' },
  ],
  ['a statement that took too long', thrown('57014'), { type: '57' }],
  [
    'silence',
    thrown('ETIMEDOUT', 'PostgreSQL stopped responding'),
    { isConnectionLoss: true, state: undefined, type: 'timeout' },
  ],
  [
    'a reset',
    thrown('ECONNRESET'),
    { isConnectionLoss: true, state: undefined, type: 'other' },
  ],
  [
    'an exhausted pool',
    thrown(undefined, 'timeout exceeded when trying to connect'),
    { isConnectionLoss: false, state: undefined, type: 'timeout' },
  ],
  ['an error of the service', thrown(undefined), { type: 'other' }],
])('%s', (_what, error, meaning) => {
  const { code } = error as { code?: string };
  const none = {
    isDataError: false,
    isConflict: false,
    isStalePlan: false,
    isUnsupported: false,
    isConnectionLoss: false,
    state: code,
  };
  expect({
    isDataError: isDataError(error),
    isConflict: isConflict(error),
    isStalePlan: isStalePlan(error),
    isUnsupported: isUnsupported(error),
    isConnectionLoss: isConnectionLoss(error),
    ...failureOf(error),
  }).toEqual({ ...none, ...meaning });
});

test('an error that the service made of another one means the same', () => {
  const made = unavailable(thrown('40001'));
  expect(isConflict(made)).toBe(true);
  expect(failureOf(made)).toEqual({ state: '40001', type: '40' });
});

test('a host with two addresses has the reasons of both, and the code of the first', () => {
  const both = new AggregateError([
    thrown('ECONNREFUSED', 'connect ECONNREFUSED ::1:5432'),
    thrown('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432'),
  ]);
  expect(reasonOf(both)).toBe(
    'connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432',
  );
  expect(codeOf(both)).toBe('ECONNREFUSED');
});
