import type { Column } from '../../storage/records/table.ts';
import { csv } from './csv.ts';
import { ndjson } from './ndjson.ts';

/** An item of a file: where it begins, counted from 1, and what it holds; or what keeps it from being read. */
export type Read = { line: number; input: object } | { line: number; fault: string };

/** A format of files with one item after the other. */
export interface Format {
  /** Whether numbers may be digits in a text, and null means that there is no value. */
  isText: boolean;
  /** What is before the first item. */
  head(columns: readonly Column[]): string;
  /** One item, with the end of its line. */
  write(columns: readonly Column[], row: Array<string | null>): string;
  /**
   * @param longest how many bytes an item may have
   * @throws Error when what follows cannot be told apart any more
   */
  read(chunks: AsyncIterable<Buffer>, columns: readonly Column[], longest: number): AsyncIterable<Read>;
}

export const formats = { ndjson, csv } as const satisfies Record<string, Format>;
export type FormatName = keyof typeof formats;

/** By the end of a file's name; NDJSON for any other. */
export function formatOf(file: string | undefined): FormatName {
  return file?.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson';
}
