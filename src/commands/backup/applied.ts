import type { ClientBase } from 'pg';
import type { Catalogue } from './catalogue.ts';

/** The table of applied migrations. */
export const ledger = 'mikro_orm_migrations';

/** The migrations that a database has had; none when it has none. */
export async function appliedMigrations(session: ClientBase, { tables }: Catalogue): Promise<string[]> {
  if (!tables.some(({ name }) => name === ledger)) return [];
  const { rows } = await session.query<{ name: string }>(`select name from ${ledger} order by name collate "C"`);
  return rows.map(({ name }) => name);
}

/** @throws Error when a release after this one made the tables */
export function assertKnown(applied: string[], known: string[], what: string): void {
  const newer = applied.filter((name) => !known.includes(name));
  if (newer.length === 0) return;
  throw new Error(`${what} is of a newer release: this one does not know ${newer.join(', ')}. Use that release.`);
}
