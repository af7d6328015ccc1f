import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type InfoRecord, type Options, parse } from 'csv-parse';
import type { Column } from '../../storage/records/table.ts';
import type { Format, Read } from './format.ts';
import { plainOf } from './value.ts';

/**
 * RFC 4180 in UTF-8, with a header. An empty field is no value, but where a text must be: there it is the empty text. A
 * text that may be null is null for an empty field, and empty for `""`, as PostgreSQL's COPY reads it.
 */
export const csv: Format = {
  isText: true,
  head: (columns) => `${columns.map(({ member }) => member).join(',')}\r\n`,
  write: (columns, row) => `${columns.map((column, at) => field(column, row[at] as string | null)).join(',')}\r\n`,
  async *read(chunks, columns, longest) {
    const parser = parse(optionsFor(columns, longest));
    const done = pipeline(Readable.from(utf8(chunks)), parser).catch(() => undefined);
    let header: Column[] | undefined;
    let line = 1;
    try {
      for await (const { end, fields } of parser as AsyncIterable<Parsed>) {
        // The end of a file, or of a part of one that was put together.
        const isBlank = fields.length === 1 && !fields[0];
        if (!header) header = headerOf(fields, columns);
        else if (!isBlank) yield itemOf(header, fields, line);
        line = end + 1;
      }
    } catch (error) {
      throw new Error(`The CSV cannot be read on: ${(error as Error).message}`, { cause: error });
    } finally {
      parser.destroy();
      await done;
    }
  },
};

interface Parsed {
  /** The last line of the record. */
  end: number;
  fields: Array<string | null>;
}

function field(column: Column, value: string | null): string {
  if (value === null) return '';
  const text = plainOf(column, value);
  // Some readers take a space away at an end that is not quoted.
  return text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function optionsFor(columns: readonly Column[], longest: number): Options {
  const mustTell = columns.some(({ isText, isNullable }) => isText && isNullable);
  return {
    bom: true,
    record_delimiter: ['\r\n', '\n'],
    // A record that has too few or too many is refused alone.
    relax_column_count: true,
    max_record_size: longest,
    on_record: ((fields, { lines }) => ({ end: lines, fields })) as (...parsed: [string[], InfoRecord]) => never,
    // It makes reading four times slower, and few tables need it.
    ...(mustTell && { cast: (text: string, { quoting }) => (text === '' && !quoting ? null : text) }),
  };
}

/** @throws Error for a name that is not known, which would be left out without a word, or is there twice */
function headerOf(names: Array<string | null>, columns: readonly Column[]): Column[] {
  const header = names.map((name) => columns.find(({ member }) => member === name));
  const unknown = names.filter((_, at) => !header[at]).map((name) => JSON.stringify(name));
  const known = columns.map(({ member }) => member).join(', ');
  if (unknown.length > 0) throw new Error(`its header names ${unknown.join(', ')}; known are ${known}.`);
  if (new Set(names).size < names.length) throw new Error('its header names a column twice.');
  return header as Column[];
}

function itemOf(header: Column[], fields: Array<string | null>, line: number): Read {
  if (fields.length !== header.length)
    return { line, fault: `The line has ${fields.length} fields instead of ${header.length}.` };
  const input: Record<string, string | null> = {};
  header.forEach(({ member, isText, isNullable }, at) => {
    const value = fields[at] ?? null;
    if (value) input[member] = value;
    else input[member] = isText && (!isNullable || value === '') ? '' : null;
  });
  return { line, input };
}

/** @throws Error for what is not UTF-8: the parser would put other characters there */
async function* utf8(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw cause;
    throw new Error('it is not UTF-8 (`iconv -f LATIN1 -t UTF-8` makes it so).', { cause });
  }
}
