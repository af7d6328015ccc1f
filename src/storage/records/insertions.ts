import { hash } from 'node:crypto';
import { type Deadline, noDeadline } from '../../deadline.ts';
import { StoreError } from '../../errors.ts';
import type { Database } from '../database/database.ts';
import { isDataError, outcomeUnknown, outcomeUnknownOfKey } from '../database/errors.ts';
import type { Batches } from './batches.ts';
import { insertOnceFor, type Once } from './once.ts';
import { inUse, SingleFlight } from './single-flight.ts';
import type { Statement } from './sql.ts';
import { parameterOf } from './sql.ts';
import type { Statements } from './statements.ts';
import type { Table } from './table.ts';

/** An item on its way to the table. */
interface Newcomer<New> {
  readonly item: New;
  readonly once?: Once;
  /** SHA-256 of the item, in hexadecimal. */
  readonly fingerprint?: string;
  /** The last statement that it was part of. */
  sent?: Promise<unknown>;
  isReplay?: boolean;
}

interface Outcome<Item> {
  readonly item: Item;
  readonly fingerprint: string;
  readonly isReplay: boolean;
}

// One batch in flight per node: the next one fills while this one becomes durable.
const writes = { maxBatch: 256, maxInFlight: 1, patience: 1000, isRetryable: isDataError };

/** How often a creation is sent again because another process was quicker with the same key. */
const attempts = 3;

/** Inserts rows, those that arrive together by one statement. */
export class Insertions<Item, New extends object> {
  readonly #database: Database;
  readonly #table: Table;
  readonly #statements: Pick<Statements, 'insert' | 'find'>;
  readonly #insertOnce: Statement;
  readonly #batches: Batches<Newcomer<New>, Item | null>;
  readonly #flights = new SingleFlight<Outcome<Item>>();

  constructor(database: Database, table: Table, statements: Pick<Statements, 'insert' | 'find'>) {
    this.#database = database;
    this.#table = table;
    this.#statements = statements;
    this.#insertOnce = insertOnceFor(table);
    this.#batches = database.batched((newcomers: Array<Newcomer<New>>) => this.#insert(newcomers), {
      ...writes,
      collection: table.name,
      operation: 'insert',
      tooLate: outcomeUnknown,
    });
  }

  /**
   * Durable when the promise resolves.
   *
   * @throws StoreError SERVICE_UNAVAILABLE, with `Retry-After` when it may be sent again; IDEMPOTENCY_KEY_REUSED,
   *   IDEMPOTENCY_KEY_IN_USE
   */
  async insert(item: New, deadline: Deadline = noDeadline, once?: Once): Promise<Item> {
    const inserted = once ? await this.#once(item, deadline, once) : await this.#batches.add({ item }, deadline);
    deadline.count?.(1);
    return inserted as Item;
  }

  /** The first with a key is inserted; whatever comes after it gets what became of the first. */
  async #once(item: New, deadline: Deadline, once: Once): Promise<Item> {
    const newcomer: Newcomer<New> = { item, once, fingerprint: fingerprintOf(this.#table, item) };
    const name = `${once.keyId} ${once.operation} ${once.hash.toString('hex')}`;
    const [outcome, isEarlier] = await this.#flights.run(
      name,
      deadline,
      () => this.#send(newcomer, deadline),
      () => newcomer.sent,
    );
    if (outcome.fingerprint !== newcomer.fingerprint) throw reused();
    once.settled(isEarlier || outcome.isReplay);
    return outcome.item;
  }

  async #send(newcomer: Newcomer<New>, deadline: Deadline): Promise<Outcome<Item>> {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const item = await this.#batches.add(newcomer, deadline).catch(mayBeRepeated);
      if (item) return { item, fingerprint: `${newcomer.fingerprint}`, isReplay: newcomer.isReplay === true };
    }
    throw inUse();
  }

  /** @returns null for what has to be sent again */
  #insert(newcomers: Array<Newcomer<New>>): Promise<Array<Item | null | Error>> {
    if (newcomers.every(({ once }) => once === undefined)) return this.#insertPlain(newcomers);
    const sent = this.#insertMixed(newcomers);
    for (const newcomer of newcomers) newcomer.sent = sent;
    return sent;
  }

  /** Inserts all or none. Ids ascend in the given order. */
  async #insertPlain(newcomers: Array<Newcomer<New>>): Promise<Item[]> {
    const rows = await this.#database.rows<Array<string | null>>(this.#statements.insert, this.#values(newcomers));
    rows.sort(([a], [b]) => compareDigits(`${a}`, `${b}`));
    return newcomers.map(({ item }, place) => this.#table.itemFrom(item, rows[place] as unknown[]) as Item);
  }

  /** Inserts those whose key is new, and those without a key: all or none. */
  async #insertMixed(newcomers: Array<Newcomer<New>>): Promise<Array<Item | null | Error>> {
    const onces = newcomers.map(({ once }) => once);
    const rows = await this.#database.rows<[place: string, fingerprint: string | null, generated: string]>(
      this.#insertOnce,
      [
        ...this.#values(newcomers),
        onces.map((once) => once?.keyId ?? null),
        onces.map((once) => once?.operation ?? null),
        onces.map((once) => once?.hash ?? null),
        newcomers.map(({ fingerprint }) => (fingerprint ? Buffer.from(fingerprint, 'hex') : null)),
      ],
    );
    const outcomes: Array<Item | null | Error> = newcomers.map(() => null);
    for (const [place, fingerprint, generated] of rows) {
      const newcomer = newcomers[Number(place) - 1] as Newcomer<New>;
      newcomer.isReplay = fingerprint !== null;
      const isReused = fingerprint !== null && fingerprint !== newcomer.fingerprint;
      // What fails from here on is this one's: the others are inserted.
      outcomes[Number(place) - 1] = isReused
        ? reused()
        : await this.#itemOf(newcomer.item, JSON.parse(generated)).catch((error: Error) => error);
    }
    return outcomes;
  }

  /** A row that an earlier release inserted, which knew fewer columns, is read from the table. */
  async #itemOf(item: New, generated: Array<string | null>): Promise<Item | Error> {
    if (generated.length === this.#table.generated.length) return this.#table.itemFrom(item, generated) as Item;
    const [row] = await this.#database.rows<Array<string | null>>(this.#statements.find, [[generated[0]]]);
    return row ? (this.#table.itemOf(row) as Item) : reused();
  }

  #values(newcomers: Array<Newcomer<New>>): unknown[][] {
    return this.#table.inserted.map(({ member }) =>
      newcomers.map(({ item }) => parameterOf(item[member as keyof New])),
    );
  }
}

/** Compares ids of a sequence, which may be beyond 2^53. An engine that shards a table returns them in another order. */
function compareDigits(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/**
 * Of the values that are there, by name: the same for every face, whatever the order of members, and for a release that
 * has more columns.
 */
function fingerprintOf({ inserted }: Table, item: object): string {
  const values = inserted
    .map(({ member }): [string, unknown] => [member, parameterOf((item as Record<string, unknown>)[member])])
    .filter(([, value]) => value !== null)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify(values), 'hex');
}

/** Whether it was stored or not: what has a key happens once. */
function mayBeRepeated(error: unknown): never {
  throw error instanceof StoreError && error.isOutcomeUnknown ? outcomeUnknownOfKey(error.cause) : error;
}

function reused(): StoreError {
  const message = 'This Idempotency-Key was used for another input; a new creation needs a new key.';
  return new StoreError('IDEMPOTENCY_KEY_REUSED', message);
}
