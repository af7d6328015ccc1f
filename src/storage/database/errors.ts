import { StoreError, tryAgain } from '../../errors.ts';
import type { DatabaseFailure } from '../../runtime/telemetry/observers.ts';

/** True for errors in the data of a statement (SQLSTATE classes 22 and 23): other inputs of its batch may be valid. */
export function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/**
 * True when a single input may have failed a whole batch of reads: by its data, its size or its duration. False when
 * the database is unavailable, because every retry would fail, too.
 */
export function isWorthAnotherTry(error: unknown): boolean {
  const state = sqlState(causeOf(error));
  return state !== undefined && !/^(?:08|40|53[34]|57P|58|28|3D)/.test(state);
}

/** True when the database has undone a statement for the sake of another one: nothing was written. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01'].includes(`${sqlState(causeOf(error))}`);
}

/** True when another server may answer what this one did not: it is not the data's fault, and it did not take long. */
export function isWorthAnotherServer(error: unknown): boolean {
  const cause = causeOf(error);
  const isSlow = sqlState(cause) === '57014' || (cause as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT';
  return !isDataError(cause) && !isUnsupported(cause) && !isSlow;
}

// Classes 08 connection, 28 authorization (a password that is being changed), 3D no such database, 40 serialization and
// deadlock, 53 resources, 57 operator intervention (shutdown, timeout), 58 system; 25006 read-only standby, 55P03 lock
// not available, 0A000 and 26000 that persist after a retry.
const passingState = /^(?:08|28|3D|40|53|57|58)\w{3}$|^(?:25006|55P03|26000)$/;
const passingSystemCall =
  /^E(?:CONN\w+|NOENT|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|NOTFOUND|MFILE|NFILE|ADDRNOTAVAIL)$/;
// A certificate that is being replaced.
const passingCertificate = /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const passingMessage =
  /^failure on connection marked as essential|(?:^| - )Connection terminated|timeout exceeded when trying to connect|and is not queryable|does not support SSL|cached plan must not change/;

function isPassing(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return (
    passingState.test(code) ||
    passingSystemCall.test(code) ||
    passingCertificate.test(code) ||
    passingMessage.test(message)
  );
}

/** True when the database cannot be reached, or the connection has broken. A pool that is used up is not a loss. */
export function isLoss(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(?:08|28|3D|57P|53300)/.test(state);
  return isPassing(error) && !waitedInVain.test((error as Error).message);
}

/** What pg says when no connection of its pool has become free in time. */
const waitedInVain = /timeout exceeded when trying to connect|cached plan must not change/;

/** A short name for what has gone wrong: PostgreSQL's code, or that of a system call. */
export function codeOf(error: unknown): string | undefined {
  const { code, message, errors: [first] = [] } = error as { code?: string; message?: string; errors?: unknown[] };
  // pg has no code for a connection that the other end has closed.
  if (code === undefined && /^Connection terminated/.test(message ?? '')) return 'ECONNRESET';
  return code ?? (first === undefined ? undefined : codeOf(first));
}

/** Converts a temporary failure of the database to a StoreError; returns undefined for any other error. */
export function unavailable(error: unknown): StoreError | undefined {
  if (isUnmigrated(error)) return tryAgain('The database has not been migrated.', error);
  return isPassing(error) ? tryAgain('The database cannot be reached; try again shortly.', error) : undefined;
}

/**
 * True when a failed statement may have been executed: the connection was lost after it was sent. A statement that
 * PostgreSQL rejects was not executed, unless PostgreSQL, or a pooler in front of it, does not know either (08, 40003).
 */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  // XX000 is Citus: it has lost a worker node, perhaps while it committed.
  if (state !== undefined)
    return state.startsWith('08') || state === '40003' || (state === 'XX000' && isPassing(error));
  return isPassing(error) && !/and is not queryable$/.test((error as Error).message);
}

/** The error for a write with an unknown outcome. It has no `Retry-After`, because a retry may write twice. */
export function outcomeUnknown(cause?: unknown): StoreError {
  const message =
    'The database did not say whether this was stored: it may have been. Look for it before you send it again.';
  return new StoreError('SERVICE_UNAVAILABLE', message, {
    isOutcomeUnknown: true,
    ...(cause !== undefined && { cause }),
  });
}

/** The same for a write that happens once, however often it is sent. */
export function outcomeUnknownOfKey(cause?: unknown): StoreError {
  const message =
    'The database did not say whether this was stored: it may have been. Send it again with the same Idempotency-Key.';
  return tryAgain(message, cause);
}

/** The error when too many inputs are pending: nothing was started. */
export function busy(): StoreError {
  return tryAgain('Too many requests wait for the database; try again shortly.');
}

/** The error for a missed deadline when nothing was started, or only read. */
export function late(): StoreError {
  return tryAgain('The database did not answer in time; try again shortly.');
}

/** True when the engine does not support a statement of this form (SQLSTATE 0A000): it was not executed. */
export function isUnsupported(error: unknown): boolean {
  return sqlState(error) === '0A000' && !isPassing(error);
}

/** True when a table (SQLSTATE 42P01) or a column (42703) does not exist: the database has not been migrated. */
export function isUnmigrated(error: unknown): boolean {
  return [error, (error as Error).cause].some((one) => /^42(?:P01|703)$/.test(`${sqlState(one)}`));
}

/** PostgreSQL's code for an error; undefined for errors of others. */
export function sqlState(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** A failure in words of which there are few, for observers. */
export function failureOf(error: unknown): DatabaseFailure {
  const cause = causeOf(error);
  const state = sqlState(cause);
  // Whatever a server says, there are not more classes than those of PostgreSQL's manual, appendix A.
  if (state) return { state, type: /^(?:[0-5][0-9A-Z]|[FHPX][0-9VX])/.exec(state)?.[0] ?? 'other' };
  const { code, message = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  const isTimeout = code === 'ETIMEDOUT' || message.includes('timeout exceeded');
  return { state, type: isTimeout ? 'timeout' : error instanceof StoreError ? 'unavailable' : 'other' };
}

/** The driver's error behind one that was translated. */
function causeOf(error: unknown): unknown {
  return error instanceof StoreError ? error.cause : error;
}
