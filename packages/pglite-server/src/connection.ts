import type { Socket } from 'node:net';

const headerSize = { first: 8, other: 5 };
// A startup message has its version and at least the end of its parameters.
const shortest = { first: 9, other: 4 };
// The types of COPY data are excluded.
const messageTypes = 'BCDEFHPQSX';

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
  #needed = headerSize.first;

  constructor(readonly socket: Socket) {}

  receive(chunk: Buffer): void {
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

  write(data: Uint8Array): void {
    // Copied, because the engine's memory will have changed by the time a slow
    // reader takes the data.
    if (this.socket.writable) this.socket.write(Buffer.from(data));
  }

  #endOfStartup(bytes: Buffer) {
    const [length, version] = [bytes.readUInt32BE(0), bytes.readUInt16BE(4)];
    // Any other first message is a cancel request, which has no answer, or an
    // encryption request, which no client sends on a Unix socket.
    if (version !== 3 || length < shortest.first) {
      this.isOver = true;
      return 0;
    }
    this.#needed = length;
    if (bytes.length < length) return 0;
    this.#isStarted = true;
    this.#needed = headerSize.other;
    return length;
  }

  #endOfMessages(bytes: Buffer) {
    for (let end = 0; ; end += this.#needed) {
      const rest = bytes.length - end;
      const length =
        rest < headerSize.other ? shortest.other : bytes.readUInt32BE(end + 1);
      this.#needed = Math.max(headerSize.other, 1 + length);
      const type = String.fromCharCode(bytes[end] ?? 0);
      if (rest > 0 && (!messageTypes.includes(type) || length < shortest.other))
        this.isOver = true;
      if (this.isOver || rest < this.#needed) return end;
      if (type === 'X') this.isOver = true;
      if (type === 'Q' || type === 'P')
        this.#examine(
          type,
          bytes.subarray(end + headerSize.other, end + this.#needed),
        );
      if (this.isOver) return end;
      this.isAmidQuery = !'SQF'.includes(type);
    }
  }

  /** Inspects the SQL of a Query or a Parse, where a name precedes it. */
  #examine(type: string, body: Buffer) {
    const [first = '', second = ''] = body.toString('latin1').split('\0', 2);
    const sql = type === 'P' ? second : first;
    this.isOver = contains(copyIn, sql);
    this.hasSettings ||= contains(sessionChange, sql);
  }
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
  const statements = sql.replace(
    sqlTokens,
    (_token, word?: string) => word ?? ' ',
  );
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
