import { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { exact, isRecord, parseExactJson } from '@animal-store/exact-json';
import { parse } from 'csv-parse';
import { stringify } from 'csv-stringify/sync';
import type { TObject, TSchema } from 'typebox';
import { linesOf } from '../../commands/files.ts';
import { kindIn, kinds } from '../../validation/kinds.ts';
import { type Kind, unwrapped } from '../../validation/rules.ts';

/**
 * An item and the line (from 1) where it begins, or the reason why it cannot be
 * read.
 */
export type Line =
  | { line: number; input: object }
  | { line: number; fault: string };

/** A member of an item, and a column of CSV. */
type CsvColumn = ReturnType<typeof csvColumnsOf>[number];

interface Format {
  /**
   * True when all values, also numbers, are texts, and an empty field means
   * null.
   */
  hasOnlyTexts: boolean;
  head(columns: CsvColumn[]): string;
  write(columns: CsvColumn[], items: readonly object[]): string;
  /**
   * @param maxLength maximum size of an item, in bytes
   * @throws Error when the rest of the file cannot be parsed
   */
  read(
    chunks: AsyncIterable<Buffer>,
    columns: CsvColumn[],
    maxLength: number,
  ): AsyncIterable<Line>;
}

/** The columns of a collection: the members of its items and of its input. */
export function csvColumnsOf(...schemas: TObject[]) {
  const all = schemas.map(({ properties }) => properties);
  const members: TSchema[] = Object.assign({}, ...all);
  return Object.entries(members).map(([name, schema]) => {
    const { member, isNullable } = unwrapped(schema);
    const { csv }: Kind = kindIn(member) ?? kinds.json;
    return { name, csv, isNullable };
  });
}

/** One JSON object per line: the item's body in REST. */
const ndjson: Format = {
  hasOnlyTexts: false,
  head: () => '',
  write(columns, items) {
    const names = columns.map(({ name }) => name);
    return items
      .map((item) => `${JSON.stringify(pick(item, names), exact)}\n`)
      .join('');
  },
  async *read(chunks, _columns, maxLength) {
    let line = 0;
    for await (const text of linesOf(chunks, maxLength)) {
      line += 1;
      const isBlank = ['', '\r'].includes(`${text?.subarray(0, 2)}`);
      if (!text)
        yield { line, fault: `The line is longer than ${maxLength} bytes.` };
      else if (!isBlank) yield lineFrom(line, () => parseExactJson(text));
    }
  },
};

function pick(item: object, names: string[]) {
  const values = item as Record<string, unknown>;
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

function lineFrom(line: number, read: () => unknown): Line {
  try {
    const input = read();
    if (isRecord(input)) return { line, input };
    return { line, fault: 'The line must be a JSON object.' };
  } catch (error) {
    return {
      line,
      fault: `The line is not acceptable JSON: ${(error as Error).message}.`,
    };
  }
}

const crlf = '\r\n';

/**
 * RFC 4180 in UTF-8, with a header. An empty field means the empty text in a
 * text column, and null in another column. In a nullable text column it means
 * null, and `""` means the empty text, as in PostgreSQL's COPY.
 */
const csv: Format = {
  hasOnlyTexts: true,
  head: (columns) => `${columns.map(({ name }) => name).join(',')}${crlf}`,
  write: (columns, items) =>
    stringify([...items], {
      columns: columns.map(({ name }) => name),
      record_delimiter: crlf,
      quote_record_delimiter: true,
      // Some readers trim unquoted fields.
      quoted_match: /^$|^\s|\s$/,
      cast: {
        boolean: (value) => `${value}`,
        date: (value) => value.toISOString(),
        null: () => ({ value: '', quoted_match: null }),
        string: (value, { column }) =>
          columns.find(({ name }) => name === column)?.csv === 'json'
            ? JSON.stringify(value)
            : value,
      },
    }),
  async *read(chunks, columns, maxLength) {
    const parser = parse({
      record_delimiter: [crlf, '\n', '\r'],
      columns: (names: string[]) => headerOf(names, columns),
      // A record with too few or too many fields is rejected alone.
      relax_column_count: true,
      max_record_size: maxLength,
      info: true,
      raw: true,
      cast: (text, { column, quoting }) =>
        text ||
        emptyIn(
          columns.find(({ name }) => name === column),
          quoting,
        ),
    });
    // Strict, because the parser would replace bytes that are not UTF-8.
    const decoder = Duplex.fromWeb(
      new TextDecoderStream('utf-8', { fatal: true }),
    );
    const done = pipeline(chunks, decoder, parser).catch(() => undefined);
    let line = 2;
    try {
      const records: AsyncIterable<CsvRecord> = parser;
      for await (const { record, raw, info } of records) {
        const fields = info.error?.record ?? Object.values(record);
        const isBlank = fields.length === 1 && !fields[0];
        if (info.error && !isBlank)
          yield {
            line,
            fault: `The line has ${fields.length} fields instead of ${info.columns.length}.`,
          };
        else if (!isBlank)
          yield lineFrom(line, () => withJson(record, columns));
        // `info.lines` counts CR LF in a quoted field twice.
        line += raw.split(/\r\n?|\n/).length - 1;
      }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const isText = code !== 'ERR_ENCODING_INVALID_ENCODED_DATA';
      const reason = isText
        ? message
        : 'it is not UTF-8 (`iconv -f LATIN1 -t UTF-8` converts it, `iconv -f UTF-16 -t UTF-8` the Unicode text of a spreadsheet).';
      throw new Error(`The rest of the CSV cannot be read: ${reason}`, {
        cause: error,
      });
    } finally {
      parser.destroy();
      await done;
    }
  },
};

interface CsvRecord {
  record: Record<string, unknown>;
  /** Its text, with what ends it. */
  raw: string;
  info: {
    columns: unknown[];
    /** The fields of a record that has too few or too many. */
    error?: { record: unknown[] };
  };
}

/** Parses the fields that hold JSON. */
function withJson(record: Record<string, unknown>, columns: CsvColumn[]) {
  for (const { name, csv } of columns) {
    const text = record[name];
    if (csv === 'json' && text)
      record[name] = parseExactJson(Buffer.from(`${text}`));
  }
  return record;
}

/** The value of an empty field. */
const emptyIn = (column: CsvColumn | undefined, isQuoted: boolean) =>
  column?.csv === 'text' && (isQuoted || !column.isNullable) ? '' : null;

/**
 * @throws Error for an unknown column, whose values would be dropped silently,
 *   or a repeated one
 */
function headerOf(names: string[], columns: CsvColumn[]) {
  const known = columns.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `its header names ${JSON.stringify(unknown).slice(1, -1)}; known are ${known.join(', ')}.`,
    );
  if (new Set(names).size < names.length)
    throw new Error('its header names a column twice.');
  return names;
}

export const formats = { ndjson, csv };
export type FormatName = keyof typeof formats;

export function formatOf(file: string | undefined): FormatName {
  return file?.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson';
}
