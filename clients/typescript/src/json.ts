import { int64Members } from './generated/openapi.ts';

/** ECMAScript's JSON.parse source text access, which TypeScript's library does not know yet. */
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
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

/** Reads a body of REST: what the contract calls an int64 becomes a `bigint`, from its digits. */
export function readRest(text: string): unknown {
  return json.parse(text, (key, value, { source }) =>
    typeof value === 'number' && isInt64Member.has(key) ? BigInt(source ?? '') : value,
  );
}

/** What the contract calls an int64 becomes a `bigint`, in an object of GraphQL, which has it as text. */
export function readIds(object: object): unknown {
  const read = ([name, value]: [string, unknown]) => [name, isInt64Member.has(name) ? BigInt(String(value)) : value];
  return Object.fromEntries(Object.entries(object).map(read));
}

/** Writes a body of REST: a `bigint` as a JSON number of all its digits. */
export function writeRest(value: unknown): string {
  return write(value, (_key, member) => (typeof member === 'bigint' ? json.rawJSON?.(`${member}`) : member));
}

/** The member as it is, and not what a `BigInt.prototype.toJSON`, which many programs set, has made of it. */
function write(value: unknown, written: (key: string, member: unknown) => unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, member) {
    return written(key, typeof this[key] === 'bigint' ? this[key] : member);
  });
}

/**
 * Writes a body of GraphQL: a `bigint` as a string of digits, as `ID` has them.
 *
 * @throws RangeError for an integer beyond 2^53 - 1 that is a `number`
 */
export function writeGraphQL(value: unknown): string {
  return write(value, (key, member) => {
    if (typeof member === 'bigint') return `${member}`;
    if (Number.isInteger(member) && !Number.isSafeInteger(member)) {
      throw new RangeError(`The variable ${key} is beyond 2^53 - 1, and may have been rounded: pass a bigint.`);
    }
    return member;
  });
}
