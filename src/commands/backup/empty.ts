import type { ClientBase } from 'pg';
import { quoted } from '../../storage/records/quoting.ts';
import { ledger } from './applied.ts';
import { type Catalogue, readCatalogue } from './catalogue.ts';

/**
 * Removes the tables of an empty store, to make room for those that are to come.
 *
 * @param ours the tables that may be removed; all when undefined
 * @param refusal makes the message when there is anything to lose
 */
export async function clear(
  session: ClientBase,
  refusal: (full: string) => string,
  ours?: ReadonlySet<string>,
): Promise<void> {
  const catalogue = await readCatalogue(session);
  const others = catalogue.tables.filter(({ name }) => ours && !ours.has(name));
  if (others.length > 0) throw new Error(refusal(`it has other tables (${others.map(({ name }) => name).join(', ')})`));
  // Nobody adds a row between the look and the removal.
  for (const { name } of catalogue.tables) await session.query(`lock table ${quoted(name)} in access exclusive mode`);
  const full = await rowsIn(session, catalogue);
  if (full.length > 0) throw new Error(refusal(full.join(', ')));
  const names = (things: Array<{ name: string }>) => things.map(({ name }) => quoted(name)).join(', ');
  if (catalogue.tables.length > 0) await session.query(`drop table ${names(catalogue.tables)}`);
  const { sequences } = await readCatalogue(session);
  if (sequences.length > 0) await session.query(`drop sequence ${names(sequences)}`);
}

/** The tables with rows, and how many. That migrations have been applied is nothing to lose. */
async function rowsIn(session: ClientBase, { tables }: Catalogue): Promise<string[]> {
  const full: string[] = [];
  for (const { name } of tables.filter((table) => table.name !== ledger)) {
    const { rows } = await session.query<{ count: string }>(`select count(*) from ${quoted(name)}`);
    if (rows[0]?.count !== '0') full.push(`${name} has ${rows[0]?.count} rows`);
  }
  return full;
}
