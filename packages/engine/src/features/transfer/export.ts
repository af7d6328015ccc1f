import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Call } from '../../call.ts';
import { assertFree, writeWhole } from '../../commands/files.ts';
import type { Int64 } from '../../validation/int64.ts';
import { pageLimit } from '../../validation/page-size.ts';
import { csvColumnsOf, type FormatName, formatOf, formats } from './formats.ts';
import type { Report, Transfer } from './types.ts';

export interface ExportFlags {
  output?: string;
  force?: boolean;
  format?: FormatName;
  /** Only items with a greater id. */
  after?: Int64;
}

/** Writes all items to a file, or to standard output. */
export async function exportItems(
  { collection: { item, service }, progress, signal }: Transfer,
  { output, force = false, format = formatOf(output), after }: ExportFlags,
): Promise<Report> {
  if (output) assertFree(output, force);
  const { head, write } = formats[format];
  const columns = csvColumnsOf(item);
  let exported = 0;
  let last: Int64 | undefined;
  /**
   * Reads each page in a separate statement, so that a slow reader holds no
   * transaction open.
   */
  async function* pages() {
    yield head(columns);
    let hasMore = true;
    while (hasMore) {
      const query = { limit: pageLimit.max, after: last ?? after };
      const page = await service.list(query as never, Call.ofOperator());
      const { items } = page;
      signal.throwIfAborted();
      if (items.length > 0) yield write(columns, items);
      exported += items.length;
      last = items.at(-1)?.id ?? last;
      progress(exported);
      hasMore = page.hasNext;
    }
  }
  if (output) await writeWhole(output, (handle) => handle.writeFile(pages()));
  else {
    const { stdout } = process;
    let texts = Readable.from(pages());
    if (stdout.isTTY) texts = texts.map(printablePage);
    await pipeline(texts, stdout, { end: false });
  }
  let text = `${exported} exported`;
  if (last !== undefined) text += `, the last with id ${last}`;
  const result = { exported, last: last?.toString() };
  return { result, items: exported, text };
}

/** Replaces what a terminal would interpret. JSON escapes only some of it. */
const printablePage = (text: string) =>
  text.replace(/\r(?!\n)|[^\P{Cc}\r\n]/gu, '?');
