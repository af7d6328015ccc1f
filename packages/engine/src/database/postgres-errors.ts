import { badInput, StoreError, Unavailable } from '../errors.ts';

// Classes of SQLSTATE: 08 connection, 22 and 23 data, 28 authorization (during a
// password change), 3D no such database, 40 serialization and deadlock, 53
// resources (53100 disk full, 53300 connections, 53400 configured limits), 57
// operator intervention (57014 timeout, 57P shutdown), 58 system. And 25006
// read-only standby, 26000 no such prepared statement, 55P03 lock not available.
const invalidData = /^2[23]/;
/** What no input of a shared write causes. */
const notOfInput =
  /^(?:08|0A|25|26|28|3D|40|53|55|57|58|XX)|^42(?:P01|P05|703|883)$/;
/** Every retry would fail, too. */
const failsAgain = /^(?:08|28|3D|40|53[34]|57P|58)/;
/** No session can be used or opened. */
const lostConnection = /^(?:08|28|3D|57P|53300)/;
/** A later request may succeed. 26000 persists after a retry. */
const transientState =
  /^(?:08|28|3D|40|53|57|58)\w{3}$|^(?:25006|55P03|26000)$/;

/**
 * True for invalid data in a statement (SQLSTATE classes 22 and 23). Other
 * inputs of its batch may be valid.
 */
export function isDataError(error: unknown) {
  return invalidData.test(sqlState(error) ?? '');
}

/**
 * True when one input may have failed a shared write: a constraint, a trigger, a
 * policy, a row too large for an index. PostgreSQL has rolled it back, so its
 * parts are safe to repeat.
 */
export function isInputAtFault(error: unknown) {
  const state = sqlState(error);
  if (state === undefined || isRefusedSession(error)) return false;
  return !notOfInput.test(state);
}

/** True for what PostgreSQL or a rule refuses: the session is not broken. */
export function keepsSessionUsable(error: unknown) {
  if (error instanceof Unavailable) return false;
  return error instanceof StoreError || isInputAtFault(error);
}

/**
 * True when one input may have failed a whole batch of reads, by its data, size
 * or duration. False when the database is unavailable, because every retry
 * would fail, too.
 */
export function isWorthAnotherTry(error: unknown) {
  const cause = causeOf(error);
  const state = sqlState(cause);
  if (state === undefined || isRefusedSession(cause)) return false;
  return !failsAgain.test(state);
}

/**
 * True when PostgreSQL rolled a statement back because it conflicted with
 * another (serialization failure, deadlock).
 */
export function isConflict(error: unknown) {
  return ['40001', '40P01'].includes(`${sqlState(causeOf(error))}`);
}

const transientSystemCall =
  /^E(?:CONN\w+|NOENT|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|NOTFOUND|MFILE|NFILE|ADDRNOTAVAIL)$/;
// During the replacement of a certificate.
const transientCertificate =
  /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
// Citus passes on libpq's words for a lost worker node, with XX000.
const transientMessage =
  /^failure on connection marked as essential|SSL SYSCALL error|(?:server|SSL connection has been) closed(?: the connection)? unexpectedly|(?:^| - )Connection terminated|timeout exceeded when trying to connect|^timeout expired$|and is not queryable|does not support SSL/;

function isTransient(error: unknown) {
  const { code = '', message = '' } = error as NodeJS.ErrnoException;
  return (
    transientState.test(code) ||
    isStalePlan(error) ||
    isRefusedSession(error) ||
    transientSystemCall.test(code) ||
    transientCertificate.test(code) ||
    transientMessage.test(message)
  );
}

// pg's error.
const exhausted = /timeout exceeded when trying to connect/;

/**
 * True when the database is unreachable or the connection broke; false when the
 * pool is exhausted.
 */
export function isConnectionLoss(error: unknown) {
  const state = sqlState(error);
  if (isRefusedSession(error)) return true;
  if (state !== undefined) return lostConnection.test(state);
  return isTransient(error) && !exhausted.test((error as Error).message);
}

/**
 * True for a prepared statement of which a column has changed its type: it was
 * not executed. PostgreSQL translates its messages, but not its routines.
 */
export function isStalePlan(error: unknown) {
  const { routine } = error as { routine?: string };
  return routine === 'RevalidateCachedQuery';
}

/**
 * True when the database takes no sessions of this role: 55000 while
 * `allow_connections` is false, 42501 without the right `connect`.
 */
function isRefusedSession(error: unknown) {
  const { routine } = error as { routine?: string };
  return routine === 'CheckMyDatabase';
}

/** What observers learn of a failure. */
export type Failure = ReturnType<typeof failureOf>;

/** The code of an error: PostgreSQL's, or that of a system call. */
export function codeOf(error: unknown): string | undefined {
  const {
    code,
    message,
    errors: [first] = [],
  } = error as NodeJS.ErrnoException & { errors?: object[] };
  if (code) return code;
  // pg sets no code when the server closes the connection.
  if (/^Connection terminated/.test(message)) return 'ECONNRESET';
  return first && codeOf(first);
}

/**
 * Converts a temporary failure of the driver; returns undefined for any other
 * error.
 */
export function unavailable(error: unknown) {
  if (isUnmigrated(error))
    return new Unavailable('The database has not been migrated.', error);
  if (!isTransient(error)) return undefined;
  const message = `The database cannot ${abilityLost(error)}; try again shortly.`;
  return new Unavailable(message, error);
}

function abilityLost(error: unknown) {
  const {
    code = '',
    syscall,
    errors,
  } = error as NodeJS.ErrnoException & Partial<AggregateError>;
  // A full disk, or a standby: reads go on.
  if (/^(?:53100|25006)$/.test(code)) return 'write now';
  // The system's own ETIMEDOUT names its call. That of several addresses does
  // not, and has an error of each.
  const isOfSystem = syscall !== undefined || errors !== undefined;
  const isSilent = code === 'ETIMEDOUT' && !isOfSystem;
  // A timeout, a lock, a conflict.
  const isLate = /^(?:57014|55P03|40\w{3}$)/.test(code);
  return isSilent || isLate ? 'answer in time' : 'be reached';
}

/** True for a write that may have been stored. */
export function isOutcomeUnknown(error: unknown) {
  return error instanceof Unavailable && error.isOutcomeUnknown;
}

const unknownOutcome = /^(?:08|40003)/;

/**
 * True when a failed statement may have been executed, because the connection
 * was lost after it was sent. A statement that PostgreSQL rejects was not
 * executed, unless PostgreSQL or a pooler reports an unknown outcome (08,
 * 40003).
 */
export function leavesOutcomeUnknown(error: unknown) {
  const state = sqlState(error);
  // Citus reports XX000 when it loses a worker node, perhaps during the commit.
  const isOfServer = state !== undefined && state !== 'XX000';
  if (isOfServer) return unknownOutcome.test(state);
  const isUnsent = /and is not queryable$/.test((error as Error).message);
  return isTransient(error) && !isUnsent;
}

/**
 * True when the engine does not support a statement of this form (SQLSTATE
 * 0A000): it was not executed.
 */
export function isUnsupported(error: unknown) {
  return sqlState(error) === '0A000' && !isTransient(error);
}

/**
 * True when a table (SQLSTATE 42P01) or a column (42703) does not exist: the
 * database has not been migrated.
 */
export function isUnmigrated(error: unknown) {
  return [error, (error as Error).cause].some((one) =>
    /^42(?:P01|703)$/.test(`${sqlState(one)}`),
  );
}

/** @param member that names no item, or none that the caller sees */
export function noSuch(member: string, cause?: unknown) {
  return badInput(`${member} must be the id of one that exists.`, cause);
}

/** The SQLSTATE of an error; undefined for other errors. */
export function sqlState(error: unknown) {
  const { code } = (error ?? {}) as { code?: unknown };
  if (typeof code !== 'string') return undefined;
  const isState = /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
  return isState ? code : undefined;
}

/**
 * Describes a failure for observers.
 *
 * @returns PostgreSQL's own code, if any; and a type of low cardinality: the
 *   class of the code, `timeout`, `unavailable` or `other`
 */
export function failureOf(error: unknown) {
  const cause = causeOf(error);
  const state = sqlState(cause);
  // Limited to the classes in PostgreSQL's manual, appendix A, whatever the
  // server sends.
  if (state) {
    const [type = 'other'] = /^(?:[0-5]\w|[FHPX][0-9VX])/.exec(state) ?? [];
    return { state, type };
  }
  const { code, message = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  if (code === 'ETIMEDOUT' || message.includes('timeout exceeded'))
    return { state, type: 'timeout' };
  const isAway = error instanceof Unavailable;
  return { state, type: isAway ? 'unavailable' : 'other' };
}

/**
 * The message of an error. An AggregateError, for a host with several
 * addresses, has an empty one.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError)
    return error.errors.map(reasonOf).join('; ');
  if (error instanceof Error) return error.message;
  return String(error);
}

/** The driver's error behind a translated one. */
export function causeOf(error: unknown): unknown {
  if (error instanceof Unavailable) return error.cause;
  return error;
}
