import type { DatabaseError } from 'pg';
import { badInput, StoreError, Unavailable } from '../errors.ts';

/** What a failure says of its statement, its inputs and its session. */
interface Meaning {
  /** Undefined for a failure that lasts. */
  cannot?: 'write now' | 'answer in time' | 'be reached';
  /**
   * The shared statements that are repeated in parts, because one input may be
   * at fault. PostgreSQL has rolled back what it refused.
   */
  retry?: 'reads' | 'writes' | 'all';
  /** True for a refusal, after which the session serves others. */
  keepsSession?: boolean;
  /** The session is lost, or none can be opened. */
  isLost?: boolean;
  /** The statement may have been executed. */
  isOutcomeUnknown?: boolean;
}

const refusal: Meaning = { retry: 'all', keepsSession: true };
const wrong: Meaning = { retry: 'reads' };
const lost: Meaning = { cannot: 'be reached', isLost: true };
const passing: Meaning = { retry: 'reads', cannot: 'be reached' };
const late: Meaning = { retry: 'reads', cannot: 'answer in time' };
const readOnly: Meaning = { retry: 'reads', cannot: 'write now' };
/** Every read would meet it again. */
const conflict: Meaning = { retry: 'writes', cannot: 'answer in time' };

/**
 * By SQLSTATE, its first three characters, or its class (PostgreSQL's manual,
 * appendix A): the longest one that is listed counts. An error that is not
 * listed may be that of one input. Who gets what: `docs/develop.md`.
 */
const meanings: Record<string, Meaning> = {
  // Connection.
  '08': { ...lost, isOutcomeUnknown: true },
  // State of the transaction; of a standby.
  '25': wrong,
  '25006': readOnly,
  // A timeout of the idle, or of the whole transaction ends the session.
  '25P03': { ...lost, cannot: 'answer in time' },
  '25P04': { ...lost, cannot: 'answer in time' },
  // No such prepared statement: it persists after a retry.
  '26': wrong,
  '26000': passing,
  // Authorization, during a password change; no such database.
  '28': lost,
  '3D': lost,
  // Serialization, deadlock, unknown completion.
  '40': conflict,
  '40003': { cannot: 'answer in time', isOutcomeUnknown: true },
  // No such table or column, a prepared statement twice.
  '42P01': wrong,
  '42703': wrong,
  '42P05': wrong,
  // Resources: a full disk, connections, a configured limit.
  '53': passing,
  '53100': readOnly,
  '53300': lost,
  '53400': { cannot: 'be reached' },
  // The lock of a row.
  '55P03': { ...late, retry: 'all' },
  // Operator intervention: a timeout, a shutdown.
  '57': passing,
  '57014': late,
  '57P': lost,
  // System.
  '58': { cannot: 'be reached' },
  // Internal.
  XX: { retry: 'all' },
};

/** By the routine that reports it, because messages are translated. */
const meaningsOfRoutines: Record<string, Meaning> = {
  // The database takes no sessions of this role: 55000 while
  // `allow_connections` is false, 42501 without the right `connect`.
  CheckMyDatabase: lost,
  // 54000 until a vacuum, lest transactions wrap around.
  GetNewTransactionId: readOnly,
  GetNewMultiXactId: readOnly,
  RevalidateCachedQuery: passing,
};

// Of Node.js, for a value that no statement can have. Other codes are those of
// the system, TLS and certificates.
const ofValue = /^ERR_(?!SSL|TLS)/;
// Citus passes on libpq's words for a lost worker node, with XX000.
const brokenConnection =
  /^failure on connection marked as essential|SSL SYSCALL error|(?:server|SSL connection has been) closed(?: the connection)? unexpectedly|(?:^| - )Connection terminated|timeout exceeded when trying to connect|^timeout expired$|and is not queryable|does not support SSL|establishing an SSL connection$/;

// pg's errors: of a full pool, and of a statement that was not sent.
const exhausted = /timeout exceeded when trying to connect/;
const unsent = /and is not queryable$/;

function meaningOf(error: unknown): Meaning {
  const { routine = '', where } = (error ?? {}) as Partial<DatabaseError>;
  const state = sqlState(error);
  // The lock of a table, without the context of a row: no input is at fault.
  if (state === '55P03' && !where) return late;
  // Citus loses a worker node, perhaps during the commit.
  if (state === 'XX000' && isBroken(error))
    return { ...passing, isOutcomeUnknown: true };
  if (state) return meaningsOfRoutines[routine] ?? meaningOfState(state);
  return isBroken(error) ? meaningOfBreak(error) : {};
}

function meaningOfState(state: string) {
  return (
    meanings[state] ??
    meanings[state.slice(0, 3)] ??
    meanings[state.slice(0, 2)] ??
    refusal
  );
}

/** @param error of the driver or the system, for a connection that broke */
function meaningOfBreak(error: BrokenConnection): Meaning {
  const { code, message, syscall, errors } = error;
  // The system's own ETIMEDOUT names its call. That of several addresses does
  // not, and has an error of each.
  const isOfSystem = syscall !== undefined || errors !== undefined;
  const isSilent = code === 'ETIMEDOUT' && !isOfSystem;
  return {
    cannot: isSilent ? 'answer in time' : 'be reached',
    isLost: !exhausted.test(message),
    // Also of a refused connection, through which no write is sent.
    isOutcomeUnknown: !unsent.test(message),
  };
}

type BrokenConnection = NodeJS.ErrnoException & { errors?: Error[] };

function isBroken(error: unknown): error is BrokenConnection {
  if (error instanceof StoreError) return false;
  const { code, message = '' } = (error ?? {}) as BrokenConnection;
  const hasCode = code !== undefined && !sqlState(error) && !ofValue.test(code);
  return hasCode || brokenConnection.test(message);
}

/**
 * True for invalid data in a statement (SQLSTATE classes 22 and 23). Other
 * inputs of its batch may be valid.
 */
export function isDataError(error: unknown) {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/** True for what PostgreSQL or a rule refuses: the session is not broken. */
export function keepsSessionUsable(error: unknown) {
  if (error instanceof Unavailable) return false;
  return error instanceof StoreError || meaningOf(error).keepsSession === true;
}

/**
 * True when one input may have failed a whole batch: a read by its data, size or
 * duration, a write by a rule, a lock or a conflict. False when the database is
 * unavailable, because every retry would fail, too.
 */
export function isWorthAnotherTry(error: unknown, kind: 'reads' | 'writes') {
  const { retry } = meaningOf(causeOf(error));
  return retry === 'all' || retry === kind;
}

/** True when the database is reached, and has not answered in time. */
export function isLate(error: unknown) {
  if (!(error instanceof Unavailable)) return false;
  return meaningOf(causeOf(error)).cannot !== 'be reached';
}

/**
 * True when PostgreSQL rolled a statement back because it conflicted with
 * another (serialization failure, deadlock).
 */
export function isConflict(error: unknown) {
  return ['40001', '40P01'].includes(`${sqlState(causeOf(error))}`);
}

/** True for a conflict or a lock that another statement has. */
export function isContention(error: unknown) {
  return /^(?:40|55P03)/.test(`${sqlState(causeOf(error))}`);
}

/**
 * True when the database is unreachable or the connection broke; false when the
 * pool is exhausted.
 */
export function isConnectionLoss(error: unknown) {
  return meaningOf(error).isLost === true;
}

/**
 * True for a prepared statement of which a column has changed its type: it was
 * not executed.
 */
export function isStalePlan(error: unknown) {
  const { routine } = error as Partial<DatabaseError>;
  return routine === 'RevalidateCachedQuery';
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
export function unavailable(error: unknown, cannot = meaningOf(error).cannot) {
  if (isUnmigrated(error))
    return new Unavailable('The database has not been migrated.', error);
  if (!cannot) return undefined;
  const message = `The database cannot ${cannot}; try again shortly.`;
  return new Unavailable(message, error);
}

/** What the database cannot do, by the driver's error. */
export function abilityLost(error: unknown) {
  return meaningOf(error).cannot ?? 'be reached';
}

/** True for a write that may have been stored. */
export function isOutcomeUnknown(error: unknown) {
  return error instanceof Unavailable && error.isOutcomeUnknown;
}

/**
 * True when a failed statement may have been executed, because the connection
 * was lost after it was sent. A statement that PostgreSQL rejects was not
 * executed, unless PostgreSQL or a pooler reports an unknown outcome (08,
 * 40003).
 */
export function leavesOutcomeUnknown(error: unknown) {
  return meaningOf(error).isOutcomeUnknown === true;
}

/**
 * True when the engine does not support a statement of this form (SQLSTATE
 * 0A000): it was not executed.
 */
export function isUnsupported(error: unknown) {
  return sqlState(error) === '0A000' && !isStalePlan(error);
}

/**
 * True when a table (SQLSTATE 42P01) or a column (42703) does not exist: the
 * database has not been migrated.
 */
export function isUnmigrated(error: unknown) {
  return [error, causeOf((error as Error).cause)].some((one) =>
    /^42(?:P01|703)$/.test(`${sqlState(one)}`),
  );
}

/** @param member that names no item, or none that the caller sees */
export function noSuch(member: string, cause?: unknown) {
  return badInput(`${member} must be the id of one that exists.`, cause);
}

/** The SQLSTATE of an error; undefined for other errors. */
export function sqlState(error: unknown) {
  const { code, severity } = (error ?? {}) as Partial<DatabaseError>;
  if (typeof code !== 'string') return undefined;
  // EPIPE is the system's; a trigger may raise one without digits, too.
  const isOfServer = severity !== undefined || /\d/.test(code);
  return isOfServer && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
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
export function causeOf(error: unknown) {
  if (error instanceof Unavailable) return causeOf(error.cause);
  return error;
}
