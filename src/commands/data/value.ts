import type { Column } from '../../storage/records/table.ts';

/** PostgreSQL's text of a value, as JSON. */
export function jsonOf({ type }: Column, text: string | null): string {
  if (text === null) return 'null';
  if (type === 'double precision') return numberOf(Number(text));
  if (type === 'text') return JSON.stringify(text);
  // Digits, and `true` and `false`, are JSON already: exact to the last digit.
  return type === 'timestamptz' ? `"${momentOf(text)}"` : text;
}

/** The same as the plain text of a field. */
export function plainOf({ type }: Column, text: string): string {
  if (type === 'double precision') return `${Number(text)}`;
  return type === 'timestamptz' ? momentOf(text) : text;
}

/** Digits where a reader of exact integers would take an exponent for a lost one (http/json.ts). */
function numberOf(number: number): string {
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? `${BigInt(number)}` : JSON.stringify(number);
}

function momentOf(milliseconds: string): string {
  return new Date(Number(milliseconds)).toISOString();
}
