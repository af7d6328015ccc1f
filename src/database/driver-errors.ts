import { StoreError, tryAgain } from '../errors.ts';

/** True for errors about the data of a statement (SQLSTATE classes 22 and 23): its neighbours are not to blame. */
export function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/**
 * True for failures of a read that one of a batch may have caused for all: its data, its size, the time it took. When the
 * database is away, all would only fail again.
 */
export function isWorthAnotherTry(error: unknown): boolean {
  const state = sqlState(error instanceof StoreError ? error.cause : error);
  return state !== undefined && !/^(?:08|53[34]|57P|58|28|3D)/.test(state);
}

// Classes 08 connection, 28 authorization (a password that is being changed), 3D no such database, 40 serialization and
// deadlock, 53 resources, 57 operator intervention (shutdown, time-out), 58 system; 25006 read-only standby, 55P03 lock
// not available, and what is left of 0A000 and 26000 after another try; 42P01 and 42703: not migrated yet.
const passingState = /^(?:08|28|3D|40|53|57|58)\w{3}$|^(?:25006|55P03|26000|42P01|42703)$/;
const passingSystemCall =
  /^E(?:CONN\w+|NOENT|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|NOTFOUND|MFILE|NFILE|ADDRNOTAVAIL)$/;
const passingMessage =
  /(?:^| - )Connection terminated|timeout exceeded when trying to connect|and is not queryable|cached plan must not change/;

function isPassing(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return passingState.test(code) || passingSystemCall.test(code) || passingMessage.test(message);
}

/** The StoreError for a database that cannot be used now; undefined when an error means something else. */
export function unavailable(error: unknown): StoreError | undefined {
  return isPassing(error) ? tryAgain('The database cannot be reached; try again shortly.', error) : undefined;
}

/**
 * True when a statement may have been carried out although it failed: the connection was lost after it was sent. What
 * PostgreSQL refuses itself was not, except where it, or a pooler before it, does not know either (08, 40003).
 */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return state.startsWith('08') || state === '40003';
  return isPassing(error) && !/and is not queryable$/.test((error as Error).message);
}

/** What is said of a write whose outcome nobody knows. No `Retry-After`: whoever repeats it may do it twice. */
export function outcomeUnknown(cause?: unknown): StoreError {
  const message =
    'The database did not say whether this was stored: it may have been. Look for it before you send it again.';
  return new StoreError('SERVICE_UNAVAILABLE', message, cause === undefined ? {} : { cause });
}

/** What is said when more wait for the database than can be served soon: nothing was begun. */
export function busy(): StoreError {
  return tryAgain('Too many requests wait for the database; try again shortly.');
}

/** What is said of something that was not begun, or only read, when its time is up. */
export function late(): StoreError {
  return tryAgain('The database did not answer in time; try again shortly.');
}

/** True where a table is not there (SQLSTATE 42P01): the database has not been migrated. */
export function isUnmigrated(error: unknown): boolean {
  return [error, (error as Error).cause].some((one) => sqlState(one) === '42P01');
}

function sqlState(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}
