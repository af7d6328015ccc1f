import type { Socket } from 'node:net';

/** The type and the length of a message; a startup message has no type. */
const headerSize = 5;
/** The length and the version of a startup message. */
const startupHeaderSize = 8;
/** A startup message has at least the end of its parameters. */
const shortestStartup = 9;
/** The length counts itself. */
const shortestMessage = 4;
/** The types of COPY data are excluded. */
const messageTypes = 'BCDEFHPQSX';
/** Query, FunctionCall and Sync. */
const endsOfQueries = 'QFS';

/**
 * Splits the bytes of one connection into messages of PostgreSQL's protocol
 * (its manual, chapter 55).
 */
export class BackendConnection {
  /**
   * True between the first message of a query and its end: a Sync, or a single
   * Query or FunctionCall.
   */
  isAmidQuery = false;
  /**
   * True when the client has ended the session, or sent something that would
   * crash the engine.
   */
  isOver = false;
  /** True when the connection may have changed settings of the session. */
  hasSettings = false;
  #isStarted = false;
  #chunks: Buffer[] = [];
  #received = 0;
  /** Number of bytes that must arrive before a message is complete. */
  #needed = startupHeaderSize;

  constructor(readonly socket: Socket) {}

  receive(chunk: Buffer) {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
  }

  /**
   * Takes all complete messages together; the startup message is taken alone.
   */
  take(): Uint8Array | undefined {
    if (this.isOver || this.#received < this.#needed) return undefined;
    const bytes = Buffer.concat(this.#chunks);
    const end = this.#isStarted
      ? this.#endOfMessages(bytes)
      : this.#endOfStartup(bytes);
    this.#chunks = [bytes.subarray(end)];
    this.#received -= end;
    if (end === 0) return undefined;
    return new Uint8Array(bytes.subarray(0, end));
  }

  write(data: Uint8Array) {
    // Copied, because the engine's memory will have changed by the time a slow
    // reader takes the data.
    if (this.socket.writable) this.socket.write(Buffer.from(data));
  }

  #endOfStartup(bytes: Buffer) {
    const length = bytes.readUInt32BE(0);
    const version = bytes.readUInt16BE(4);
    // Any other first message is a cancel request, which has no answer, or an
    // encryption request, which no client sends on a Unix socket.
    this.isOver = version !== 3 || length < shortestStartup;
    this.#needed = length;
    if (this.isOver || bytes.length < length) return 0;
    this.#isStarted = true;
    this.#needed = headerSize;
    return length;
  }

  #endOfMessages(bytes: Buffer) {
    let end = 0;
    while (this.#hasMessage(bytes.subarray(end))) {
      const message = bytes.subarray(end, end + this.#needed);
      const type = messageType(message);
      const sql = sqlOf(type, message);
      this.isOver = type === 'X' || contains(copyIn, sql);
      if (this.isOver) break;
      this.hasSettings ||= contains(sessionChange, sql);
      this.isAmidQuery = !endsOfQueries.includes(type);
      end += message.length;
    }
    return end;
  }

  /** Whether bytes begin with a whole message, which has `#needed` bytes. */
  #hasMessage(bytes: Buffer) {
    this.#needed = headerSize;
    if (bytes.length < headerSize) return false;
    const length = bytes.readUInt32BE(1);
    this.#needed = 1 + length;
    this.isOver =
      !messageTypes.includes(messageType(bytes)) || length < shortestMessage;
    return !this.isOver && bytes.length >= this.#needed;
  }
}

function messageType(message: Buffer) {
  return message.toString('latin1', 0, 1);
}

/** The SQL of a Query or a Parse, where a name precedes it. */
function sqlOf(type: string, message: Buffer) {
  if (type !== 'Q' && type !== 'P') return '';
  const texts = message.toString('latin1', headerSize).split('\0');
  return texts[type === 'Q' ? 0 : 1] ?? '';
}

/**
 * True when the text contains such a statement outside of strings, quoted names
 * and comments.
 *
 * @param sql bytes as latin1 characters are sufficient
 */
function contains(
  { hint, statement }: { hint: RegExp; statement: RegExp },
  sql: string,
) {
  if (!hint.test(sql)) return false;
  const statements = sql.replace(sqlTokens, (_, word = ' ') => word);
  // Nested comments are not parsed; they may hide such a statement.
  return statement.test(statements) || statements.includes('/*');
}

/**
 * COPY FROM STDIN: PGlite would look for the rows in the message itself, and
 * terminate (https://github.com/electric-sql/pglite/pull/1028).
 */
const copyIn = {
  hint: /\bcopy\b.*\bstdin\b/is,
  statement: /\bcopy\b.*\bfrom\s+stdin\b/is,
};
/**
 * What may change what later statements of the same session see: settings,
 * temporary tables.
 */
const sessionChange = {
  hint: /\b(?:set|reset|set_config|temp|temporary|prepare|listen|load|do|call)\b/i,
  statement:
    /(?:^|;)\s*(?:set|reset|prepare|listen|load|do|call)\b|\b(?:set_config|temp|temporary)\b/i,
};
// Words, because they may contain a dollar sign; and text that only looks like
// a statement: strings, quoted names, comments. A doubled quote ends one string
// and starts the next.
const sqlTokens =
  /e'(?:[^'\\]|''|\\.)*'|([a-z_\x80-\xff][\w$\x80-\xff]*)|'[^']*'|"[^"]*"|\$((?:[a-z_\x80-\xff][\w\x80-\xff]*)?)\$.*?\$\2\$|--[^\n]*|\/\*(?:(?!\/\*).)*?\*\//gis;
