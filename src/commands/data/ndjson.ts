import { parseExactJson } from '../../storage/input/json.ts';
import { isRecord } from '../../storage/input/record.ts';
import { linesOf } from '../files/lines.ts';
import type { Format, Read } from './format.ts';
import { jsonOf } from './value.ts';

/** A JSON object in each line: the body that REST answers for the item. */
export const ndjson: Format = {
  isText: false,
  head: () => '',
  write(columns, row) {
    let line = '{';
    columns.forEach((column, at) => {
      line += `${at > 0 ? ',' : ''}"${column.member}":${jsonOf(column, row[at] as string | null)}`;
    });
    return `${line}}\n`;
  },
  async *read(chunks, _columns, longest) {
    let line = 0;
    for await (const text of linesOf(chunks, longest)) {
      line += 1;
      // The end of a file, or of a part of one that was put together.
      if (text && isBlank(text)) continue;
      yield text ? parsed(line, text) : { line, fault: `The line is longer than ${longest} bytes.` };
    }
  },
};

const isBlank = (text: Buffer) => text.length === 0 || (text.length === 1 && text[0] === 0x0d);

function parsed(line: number, text: Buffer): Read {
  try {
    const input = parseExactJson(text, 'The line is');
    return isRecord(input) ? { line, input } : { line, fault: 'The line must be a JSON object.' };
  } catch (error) {
    return { line, fault: (error as Error).message };
  }
}
