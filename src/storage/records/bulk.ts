import type { EntityName } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import { isDataError, sqlState } from '../database/errors.ts';
import { int64 } from '../input/int64.ts';
import { type BulkStatements, bulkStatementsFor } from './bulk.statements.ts';
import { parameterOf } from './parameter.ts';
import type { Rows } from './statement.ts';
import { type Column, Table } from './table.ts';

/** An item with its id, as a check of an input has left it. */
export type Item = Record<string, unknown>;

/** What has become of an item: it was added, or it was there already; or why neither. */
export type Outcome = 'added' | 'same' | { reason: string };

/** In rows, and in bytes of text. */
const page = { rows: 2000, bytes: 4 * 1024 * 1024 };

/**
 * Reads and writes all rows of a table, many at a time. Ids become visible in ascending order, as they do with
 * creations, which may go on meanwhile. An INSERT of arrays, since the embedded store takes no COPY from a client; on
 * PostgreSQL it is nearly as fast (`docs/data.md`).
 */
export class Bulk {
  readonly table: Table;
  readonly #database: Database;
  readonly #statements: BulkStatements;

  constructor(database: Database, entity: EntityName) {
    this.#database = database;
    this.table = new Table(database.orm.getMetadata(entity));
    this.#statements = bulkStatementsFor(this.table);
  }

  /**
   * Adds items that have ids. May be repeated: an item that is there already is `same`.
   *
   * @param anywhere also ids below the last one that was given out: readers may have passed them
   * @returns in the order of the items
   */
  async addWithIds(items: Item[], anywhere: boolean): Promise<Outcome[]> {
    try {
      return await this.#addWithIds(items, anywhere);
    } catch (error) {
      if (!isDataError(error)) throw error;
      // Rows with ids beyond the counter, or that somebody has put there by hand, are told from others one by one.
      if (sqlState(error) === '23505' && !anywhere) return this.addWithIds(items, true);
      const refused = (): Outcome[] => [{ reason: `the database refuses it: ${(error as Error).message}` }];
      return this.#inHalves(items, (half) => this.addWithIds(half, anywhere), refused);
    }
  }

  /**
   * Adds items under new ids, in their order: all of them, or none when they were added under the same claim before.
   *
   * @param claim 32 bytes
   */
  async addOnce(items: Item[], claim: Buffer): Promise<boolean> {
    const rows = await this.#database.rows(this.#statements.addOnce, [
      ...this.#arrays(this.table.inserted, items),
      claim,
    ]);
    return rows.length > 0;
  }

  /** All rows from an id on, as texts, in pages. */
  async *pages(rows: Rows, from: bigint): AsyncGenerator<Array<Array<string | null>>> {
    for (let next = from; next <= int64.max; ) {
      const found = await rows(this.#statements.page, [`${next}`, page.rows, page.bytes]);
      if (found.length === 0) return;
      next = BigInt(`${found.at(-1)?.[0]}`) + 1n;
      yield found;
    }
  }

  async #addWithIds(items: Item[], anywhere: boolean): Promise<Outcome[]> {
    const arrays = this.#arrays(this.table.columns, items);
    if (anywhere) {
      const rows = await this.#database.rows<[id: string]>(this.#statements.addMissing, arrays);
      const added = new Set(rows.map(([id]) => id));
      return this.#compared(items, ({ id }) => (added.has(`${id}`) ? 'added' : undefined));
    }
    const [[last] = [null]] = await this.#database.rows<[last: string | null]>(this.#statements.addAfter, arrays);
    const isAfter = ({ id }: Item) => last === null || BigInt(id as bigint) > BigInt(last);
    return this.#compared(items, (item) => (isAfter(item) ? 'added' : undefined), last);
  }

  /** Looks up those whose outcome is not known: they are there, or they were passed over. */
  async #compared(
    items: Item[],
    outcomeOf: (item: Item) => 'added' | undefined,
    last?: string | null,
  ): Promise<Outcome[]> {
    const unknown = items.filter((item) => !outcomeOf(item)).map(({ id }) => `${id}`);
    const rows = unknown.length > 0 ? await this.#database.rows<string[]>(this.#statements.find, [unknown]) : [];
    const found = new Map(rows.map((row) => [row[0], this.table.itemOf(row) as Item]));
    return items.map((item) => {
      const there = found.get(`${item.id}`);
      return outcomeOf(item) ?? (there ? this.#comparison(item, there) : { reason: passedOver(item, last) });
    });
  }

  #comparison(item: Item, there: Item): Outcome {
    // What the item leaves out was the database's to choose.
    const differs = this.table.columns.filter(
      ({ member, fallback }) =>
        !(fallback && item[member] === undefined) && parameterOf(item[member]) !== parameterOf(there[member]),
    );
    if (differs.length === 0) return 'same';
    return { reason: `id ${item.id} is another item: its ${differs.map(({ member }) => member).join(', ')} differs` };
  }

  async #inHalves(
    items: Item[],
    add: (half: Item[]) => Promise<Outcome[]>,
    alone: () => Outcome[],
  ): Promise<Outcome[]> {
    if (items.length === 1) return alone();
    const middle = items.length >> 1;
    return [...(await add(items.slice(0, middle))), ...(await add(items.slice(middle)))];
  }

  #arrays(columns: readonly Column[], items: Item[]): unknown[][] {
    return columns.map(({ member }) => items.map((item) => parameterOf(item[member])));
  }
}

function passedOver({ id }: Item, last: string | null | undefined): string {
  return `id ${id} is free, but ids up to ${last} have been given out: readers who have passed it would miss it (--anywhere)`;
}
