import type { Collection } from '../../api/resources/collection.ts';

/** What a transfer works with. */
export interface Transfer {
  collection: Collection;
  /** Maximum size of an item in bytes: that of a request body. */
  maxLength: number;
  progress(items: number): void;
  refused(line: number, reason: string): void;
  signal: AbortSignal;
}

/** The result of a transfer, to print at its end. */
export interface Report {
  result: object;
  items: number;
  text: string;
  /** The error that ended it early. */
  failure?: unknown;
}
