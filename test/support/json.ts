/** JSON with every integer written to its last digit, `bigint`s as JSON integers. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member) => (typeof member === 'bigint' ? rawJson(`${member}`) : member));
}

/** JSON read so that integers beyond 2^53 come out as `bigint`. Deliberately not the service's own parser. */
export function fromJson(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: { source: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
      ? BigInt(context?.source ?? 0)
      : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

// ECMAScript's JSON.rawJSON, which TypeScript's library does not know yet.
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
