import type { NextPage, NextQuery } from '../../api/subscriptions/source.ts';
import type { Database } from '../database/database.ts';
import { isWorthAnotherTry } from '../database/errors.ts';
import { type Int64, int64, int64FromDigits } from '../input/int64.ts';
import { pageLimit, shared } from '../input/page.ts';
import type { Batches } from './batches.ts';
import { parameterOf } from './parameter.ts';
import type { Statements } from './statements.ts';
import { type Table, textsOf } from './table.ts';

type Text = string | null;

const reads = { maxBatch: 1, maxInFlight: 2, patience: 0, isRetryable: isWorthAnotherTry };

/** Reads what comes after a position in a table, for those who follow it. */
export class Continuation<Item extends { readonly id: Int64 }> {
  readonly #database: Database;
  readonly #table: Table;
  readonly #statements: Statements;
  readonly #pages: Batches<NextQuery, NextPage<Item>>;
  /** By what they ask for. Whoever follows may join a read that was sent before: it will read again. */
  readonly #reading = new Map<string, Promise<NextPage<Item>>>();

  constructor(database: Database, table: Table, statements: Statements) {
    this.#database = database;
    this.#table = table;
    this.#statements = statements;
    this.#pages = database.batched(([query], servedBy) => this.#read(query as NextQuery, servedBy), {
      ...reads,
      collection: table.name,
      operation: 'follow',
    });
  }

  /** @throws StoreError SERVICE_UNAVAILABLE */
  next(query: NextQuery): Promise<NextPage<Item>> {
    const key = JSON.stringify([`${query.after}`, parameterOf(query.filter), query.maxBytes]);
    let reading = this.#reading.get(key);
    if (!reading) {
      reading = this.#pages.add(query).finally(() => this.#reading.delete(key));
      this.#reading.set(key, reading);
    }
    return reading;
  }

  /** On the primary: a replica may not have what was acknowledged already. @throws StoreError SERVICE_UNAVAILABLE */
  async last(): Promise<Int64> {
    const [[last] = [null]] = await this.#database.rows<[Text]>(this.#statements.last, []);
    return last === null ? int64.min : int64FromDigits(last);
  }

  async #read({ after, filter, maxBytes }: NextQuery, servedBy: (node: string) => void): Promise<[NextPage<Item>]> {
    const { followAll, followFiltered } = this.#statements;
    const values = [`${after}`, pageLimit.max, maxBytes];
    const value = parameterOf(filter);
    const rows =
      value === null
        ? this.#database.read<Text[]>(followAll, values, servedBy)
        : this.#database.read<Text[]>(followFiltered, [...values, value], servedBy);
    return [this.#pageOf((await rows)[0] as Text[], after)];
  }

  #pageOf(row: Text[], after: Int64): NextPage<Item> {
    const { columns, itemAt, sizeOf } = this.#table;
    const last = row.at(-1);
    const texts = columns.map((column, at) => (row[at] === null ? [] : textsOf(column, row[at] as string)));
    const items = Array.from({ length: texts[0]?.length ?? 0 }, (_, place) => itemAt(texts, place) as Item);
    const hasNext = row.at(-2) === 't' || items.length === pageLimit.max;
    const read = items.at(-1)?.id ?? after;
    const end = last ? int64FromDigits(last) : read;
    const bytes = items.reduce((sum, item) => sum + sizeOf.call(this.#table, item), 0);
    return { items: shared(items), hasNext, upTo: hasNext || end < read ? read : end, bytes };
  }
}
