import type { ClientBase } from 'pg';
import { quoted } from '../../storage/records/quoting.ts';
import type { Progress } from '../program.ts';
import { appliedMigrations } from './applied.ts';
import { readCatalogue } from './catalogue.ts';
import { definitionOf } from './definition.ts';
import { readTable, type Tally } from './rows.ts';
import type { ScriptWriter } from './script.ts';

/** Writes a database as a script. Within a transaction, so that it is the database of one moment. */
export async function writeSnapshot(session: ClientBase, script: ScriptWriter, progress: Progress): Promise<Tally[]> {
  const catalogue = await readCatalogue(session);
  if (catalogue.tables.length === 0) throw new Error('There are no tables in the store: nobody has migrated it.');
  const { tables, rest } = definitionOf(catalogue);
  await script.begin({ migrations: await appliedMigrations(session, catalogue) });
  await script.statements(tables);
  const tallies: Tally[] = [];
  for (const table of catalogue.tables) {
    const columns = table.columns.map(({ name }) => quoted(name)).join(', ');
    await script.text(`copy ${quoted(table.name)} (${columns}) from stdin;\n`);
    const tell = (rows: number) => progress(table.name, rows);
    tallies.push(await readTable(session, table, tell, (_rows, lines) => script.text(lines)));
    await script.text('\\.\n');
  }
  await script.statements(rest);
  return tallies;
}
