type Reviver = (key: string, value: unknown) => unknown;

// Only text with a long run of digits or an exponent can contain a number that
// a double would change.
const suspect = /[\d.]{16}|\d[eE]/;
/** Limit for suspect text. With a reviver each value costs 30 times as much. */
const fewValues = 5000;
/**
 * Limit for any text. Of more values the garbage collector makes pauses of
 * seconds, above all of nested ones.
 */
const maxValues = 20_000;
// Skips one byte order mark.
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses UTF-8 JSON (RFC 8259; a byte order mark is skipped). Integers beyond
 * 2^53, however they are spelled, become `bigint`, all other numbers `number`;
 * a fraction that a double would change becomes an `InexactNumber`. The last of
 * duplicate members counts. `__proto__` is an own member like any other: copy it
 * by a spread, not by an assignment.
 *
 * @throws Error whose message says why it is not JSON, without a full stop
 */
export function parseExactJson(bytes: Uint8Array): unknown {
  try {
    const text = decoder.decode(bytes);
    const values = countValues(text);
    if (values > maxValues) throw new SyntaxError(tooManyValues);
    if (!suspect.test(text)) return JSON.parse(text);
    if (values > fewValues) throw new SyntaxError(tooManyForDigits);
    return JSON.parse(text, exactNumber as Reviver);
  } catch (cause) {
    throw new Error(reason(cause), { cause });
  }
}

const tooManyValues = `it may have at most ${maxValues} values`;
const tooManyForDigits = `with an exponent or 16 digits in a row it may have at most ${fewValues} values`;

/** At least the number of values, which costs less than to parse them. */
function countValues(text: string) {
  let values = 1;
  if (text.length < fewValues) return values;
  for (let at = 0; at < text.length && values <= maxValues; at += 1) {
    const one = text[at] as string;
    if (one === '"') at = endOfString(text, at);
    else if (',[{'.includes(one)) values += 1;
  }
  return values;
}

function endOfString(text: string, start: number) {
  let end = start;
  do end = text.indexOf('"', end + 1);
  while (end !== -1 && isEscaped(text, end));
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number) {
  let before = at;
  while (text[before - 1] === '\\') before -= 1;
  return (at - before) % 2 === 1;
}

/**
 * A number that a double would change. Rules reject it, and messages show it as
 * the client wrote it.
 */
export class InexactNumber {
  // Hidden, because an object in the place of another one must have no members.
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  toJSON() {
    return this.#source;
  }

  [Symbol.for('nodejs.util.inspect.custom')]() {
    return this.#source;
  }
}

function exactNumber(
  key: string,
  value: unknown,
  context?: { source: string },
) {
  if (typeof value !== 'number' || !context) return value;
  const { source } = context;
  if (!Number.isFinite(value)) return new InexactNumber(source);
  if (!/[.eE]/.test(source)) return exactInteger(key, value, context);
  const { digits, exponent } = scientific(source);
  if (digits === '') return 0;
  if (exponent < 0) {
    const read = scientific(`${value}`);
    const isSame = read.digits === digits && read.exponent === exponent;
    return isSame ? value : new InexactNumber(source);
  }
  if (Number.isSafeInteger(value)) return value;
  const sign = BigInt(Math.sign(value));
  return sign * BigInt(digits) * 10n ** BigInt(exponent);
}

/**
 * Splits a number into its digits, without zeros at either end, and the power
 * of ten of the last one.
 */
function scientific(source: string) {
  const [mantissa = '', exponent = '0'] = source.split(/[eE]/);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = `${whole}${fraction}`.replace(/^-?0*/, '');
  let end = all.length;
  while (all[end - 1] === '0') end -= 1;
  return {
    digits: all.slice(0, end),
    exponent: Number(exponent) - fraction.length + all.length - end,
  };
}

/**
 * For `JSON.parse`: makes integers beyond 2^53 `bigint`. Other numbers, also
 * integers with an exponent, become `number`.
 */
export function exactInteger(
  _name: string,
  value: unknown,
  { source }: { source: string },
) {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  if (!/^-?\d+$/.test(source)) return value;
  return BigInt(source);
}

/** For a member that is a double: the nearest one that is still a fraction. */
export function nearestDouble(value: unknown) {
  if (typeof value === 'bigint') return Number(value);
  const nearest = value instanceof InexactNumber && Number(value.toJSON());
  const isFraction = nearest && nearest % 1;
  return isFraction ? nearest : value;
}

function reason(cause: unknown) {
  if (cause instanceof SyntaxError) return cause.message.replace(/\.$/, '');
  if (
    (cause as NodeJS.ErrnoException).code ===
    'ERR_ENCODING_INVALID_ENCODED_DATA'
  )
    return 'it is not valid UTF-8';
  return 'it is nested too deeply';
}

// TypeScript's library does not declare these of ECMAScript yet.
export const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
};

/**
 * Parses JSON that PostgreSQL has written. `JSON.stringify` writes its numbers
 * as they were: those that a double would change are `JSON.rawJSON(digits)`.
 */
export function parseStoredJson(text: string): unknown {
  if (!suspect.test(text)) return JSON.parse(text);
  const read = (name: string, value: unknown, context: { source: string }) => {
    const exact = exactNumber(name, value, context);
    const isKept = exact === value || typeof value !== 'number';
    return isKept ? exact : rawJSON(context.source);
  };
  return JSON.parse(text, read as Reviver);
}

/** True for a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  const isObject = typeof value === 'object' && value !== null;
  const isOther = Array.isArray(value) || value instanceof InexactNumber;
  return isObject && !isOther;
}

/**
 * For `JSON.stringify`: writes integers without an exponent, which
 * `parseExactJson` rejects when digits may be lost.
 */
export function exact(this: unknown, name: string, value: unknown) {
  if ((this as Record<string, unknown>)[name] instanceof InexactNumber)
    return rawJSON(`${value}`);
  if (typeof value === 'bigint') return rawJSON(`${value}`);
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  return rawJSON(`${BigInt(value as number)}`);
}
