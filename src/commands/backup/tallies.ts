import type { Tally } from './rows.ts';

/** The names of the tables whose rows are not the same. */
export function differing(source: Tally[], copy: Tally[]): string[] {
  const names = new Set([...source, ...copy].map(({ table }) => table));
  const at = (tallies: Tally[], name: string) => {
    const found = tallies.find(({ table }) => table === name);
    return found && `${found.rows} ${found.sha256}`;
  };
  return [...names].filter((name) => at(source, name) !== at(copy, name));
}

/** @throws Error when a copy is not what it was made of */
export function assertSame(source: Tally[], copy: Tally[]): void {
  const names = differing(source, copy);
  if (names.length > 0)
    throw new Error(`What was written is not what was read: ${names.join(', ')}. Nothing was kept.`);
}
