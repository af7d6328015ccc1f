import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import { asWritten } from '../../storage/database/server.ts';
import { quoted } from '../../storage/records/quoting.ts';
import type { Progress } from '../program.ts';
import type { StoredTable } from './catalogue.ts';
import { lineOf, type TextRow } from './copy-text.ts';

/** How many rows a table has, and what they are: the SHA-256 of them as lines of COPY, in the order of the key. */
export interface Tally {
  table: string;
  rows: number;
  sha256: string;
}

/**
 * Values are the same text in every session with these. They hold for the transaction, so that a pooler's next client
 * does not get them.
 */
export const plainText = `
  set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
  set local bytea_output = 'hex'; set local extra_float_digits = 1; set local standard_conforming_strings = on;
  set local client_encoding = 'UTF8'`;

// A piece is at most some 16 MB, however long the texts are: rows that are longer travel a few at a time.
const longRow = 16_384;
const pieces = [
  { comparison: '<=', rows: 1000 },
  { comparison: '>', rows: 4 },
];

/**
 * Reads a table in pieces, in the order of its key, first the rows of ordinary length. Within a transaction: it uses a
 * cursor. The order, and so the checksum, is the same on every PostgreSQL.
 */
async function* piecesOf(session: ClientBase, table: StoredTable): AsyncGenerator<TextRow[]> {
  const columns = table.columns.map(({ name }) => quoted(name));
  const length = table.columns
    .filter(({ isLong }) => isLong)
    .map(({ name }) => `coalesce(octet_length(${quoted(name)}::text), 0)`);
  for (const { comparison, rows: count } of pieces) {
    await session.query(
      `declare piece no scroll cursor for select ${columns.join(', ')} from ${quoted(table.name)} as "#row"
       where ${length.join(' + ') || '0'} ${comparison} ${longRow} order by ${order(table)}`,
    );
    for (;;) {
      const { rows } = await session.query<TextRow>({
        text: `fetch ${count} from piece`,
        rowMode: 'array',
        types: asWritten,
      });
      if (rows.length === 0) break;
      yield rows;
    }
    await session.query('close piece');
  }
}

function order({ key, columns }: StoredTable): string {
  if (key.length === 0) return '"#row"::text collate "C"';
  const isCollated = (name: string) => columns.find((column) => column.name === name)?.isCollated;
  return key.map((name) => `${quoted(name)}${isCollated(name) ? ' collate "C"' : ''}`).join(', ');
}

/**
 * Reads a table, and sums up what passes.
 *
 * @param passOn gets each piece, also as lines of COPY, each with its end
 */
export async function readTable(
  session: ClientBase,
  table: StoredTable,
  progress: (rows: number) => void,
  passOn?: (rows: TextRow[], lines: string) => Promise<void>,
): Promise<Tally> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const rows of piecesOf(session, table)) {
    const lines = rows.map((row) => `${lineOf(row)}\n`).join('');
    hash.update(lines);
    count += rows.length;
    await passOn?.(rows, lines);
    progress(count);
  }
  return { table: table.name, rows: count, sha256: hash.digest('hex') };
}

/** Reads tables back. */
export async function talliesOf(session: ClientBase, tables: StoredTable[], progress: Progress): Promise<Tally[]> {
  const tallies: Tally[] = [];
  for (const table of tables) {
    tallies.push(await readTable(session, table, (rows) => progress(`${table.name}, read back`, rows)));
  }
  return tallies;
}

/**
 * Writes rows to a table that has just been made. An INSERT, since the embedded store takes no COPY from a client, and
 * the same on every PostgreSQL: each value is converted from its text as COPY would do it.
 */
export async function addRows(session: ClientBase, { name, columns }: StoredTable, rows: TextRow[]): Promise<void> {
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const values = columns.map(({ type }, at) => `"#${at}"::${type}`).join(', ');
  const arrays = columns.map((_, at) => `$${at + 1}::text[]`).join(', ');
  const members = columns.map((_, at) => `"#${at}"`).join(', ');
  await session.query(
    `insert into ${quoted(name)} (${names}) select ${values} from unnest(${arrays}) as piece (${members})`,
    columns.map((_, at) => rows.map((row) => row[at] ?? null)),
  );
}
