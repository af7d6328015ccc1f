import { int64Members } from './generated/openapi.ts';

/**
 * ECMAScript's JSON.parse source text access, which TypeScript's library does
 * not declare yet.
 */
interface ExactJson {
  parse(
    text: string,
    reviver: (
      key: string,
      value: unknown,
      context: { source?: string },
    ) => unknown,
  ): unknown;
  rawJSON?(text: string): unknown;
}
const json = JSON as ExactJson;

/** @throws Error on an engine whose JSON would round ids */
export function requireExactJson(): void {
  let source: string | undefined;
  json.parse('1', (_key, _value, context?: { source?: string }) => {
    source = context?.source;
  });
  if (source === '1' && json.rawJSON) return;
  throw new Error(
    'animal-store-client needs JSON.rawJSON and the source text in JSON.parse, to keep int64 ids exact: ' +
      'Node.js 22, Chrome 116, Firefox 135, Safari 18.4, or later.',
  );
}

const isInt64Member: ReadonlySet<string> = new Set(int64Members);

/**
 * Reads a REST body. Members that the contract declares as int64 become
 * `bigint`, from their digits.
 */
export function readRest(text: string): unknown {
  return json.parse(text, (key, value, { source }) =>
    typeof value === 'number' && isInt64Member.has(key)
      ? BigInt(source ?? '')
      : value,
  );
}

/** The same for an object of GraphQL, where int64 members are texts. */
export function readIds(object: object): unknown {
  const read = ([name, value]: [string, unknown]) => [
    name,
    isInt64Member.has(name) ? BigInt(String(value)) : value,
  ];
  return Object.fromEntries(Object.entries(object).map(read));
}

/** Writes a REST body. A `bigint` becomes a JSON number with all digits. */
export function writeRest(value: unknown): string {
  return write(value, (_key, member) =>
    typeof member === 'bigint' ? json.rawJSON?.(`${member}`) : member,
  );
}

/** Bypasses `BigInt.prototype.toJSON`, which many programs define. */
function write(
  value: unknown,
  written: (key: string, member: unknown) => unknown,
): string {
  return JSON.stringify(
    value,
    function (this: Record<string, unknown>, key, member) {
      return written(key, typeof this[key] === 'bigint' ? this[key] : member);
    },
  );
}

/**
 * Writes a GraphQL body. A `bigint` becomes a string of digits, like an `ID`.
 *
 * @throws RangeError for an integer beyond 2^53 - 1 that is a `number`
 */
export function writeGraphQL(value: unknown): string {
  return write(value, (key, member) => {
    if (typeof member === 'bigint') return `${member}`;
    if (Number.isInteger(member) && !Number.isSafeInteger(member)) {
      throw new RangeError(
        `The variable ${key} is beyond 2^53 - 1, and may have been rounded: pass a bigint.`,
      );
    }
    return member;
  });
}
