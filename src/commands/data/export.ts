import { type Int64, int64 } from '../../storage/input/int64.ts';
import type { Bulk } from '../../storage/records/bulk.ts';
import type { Rows } from '../../storage/records/statement.ts';
import type { Format } from './format.ts';

export interface ExportOptions {
  format: Format;
  /** Only items with a greater id. */
  after?: Int64 | undefined;
  progress(written: number, last: string): void;
  signal: AbortSignal;
}

/**
 * The text of a file with all items, ascending by id, a page at a time.
 *
 * @param rows reads at one moment of the database
 */
export async function* textOf(
  bulk: Bulk,
  rows: Rows,
  { format, after, progress, signal }: ExportOptions,
): AsyncGenerator<string> {
  const { columns } = bulk.table;
  const head = format.head(columns);
  if (head) yield head;
  let written = 0;
  const from = after === undefined ? int64.min : BigInt(after) + 1n;
  for await (const page of bulk.pages(rows, from)) {
    signal.throwIfAborted();
    yield page.map((row) => format.write(columns, row)).join('');
    written += page.length;
    progress(written, `${page.at(-1)?.[0]}`);
  }
}
