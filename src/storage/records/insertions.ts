import { hash } from 'node:crypto';
import { type Deadline, noDeadline } from '../../deadline.ts';
import { StoreError } from '../../errors.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import type { Database } from '../database/database.ts';
import { isDataError, outcomeUnknown, outcomeUnknownOfKey } from '../database/errors.ts';
import type { Batches } from './batches.ts';
import { parameterOf } from './sql.ts';
import type { Statements } from './statements.ts';
import type { Table } from './table.ts';

/** The idempotency key by which a creation happens once, however often a client sends it. */
export interface IdempotencyClaim {
  /** Whose it is: the id of an API key; 0 for the one from the configuration. */
  readonly keyId: number;
  /** The creation, as the API calls it: `createPet`. */
  readonly operation: string;
  /** SHA-256 of the idempotency key. */
  readonly hash: Buffer;
  /** Is told, when the creation has happened, whether that was at an earlier request. */
  settled(isReplay: boolean): void;
}

/** An item on its way to the table. */
interface Newcomer<New> {
  readonly item: New;
  readonly claim?: IdempotencyClaim;
  /** SHA-256 of the item, in hexadecimal. */
  readonly fingerprint?: string;
  /** The last statement that it was part of. */
  sent?: Promise<unknown>;
  isReplay?: boolean;
}

// One batch in flight per node: the next one fills while this one becomes durable.
const writes = { maxBatch: 256, maxInFlight: 1, patience: 1000, isRetryable: isDataError };

/** `setTimeout` knows no longer time. */
const longest = 2 ** 31 - 1;

/** Inserts rows, those that arrive together by one statement. */
export class Insertions<Item, New extends object> {
  readonly #database: Database;
  readonly #table: Table;
  readonly #statements: Statements;
  readonly #batches: Batches<Newcomer<New>, Item | null>;
  /** The end of the creation that is in progress under an idempotency key. */
  readonly #inProgress = new Map<string, Promise<unknown>>();

  constructor(database: Database, table: Table, statements: Statements) {
    this.#database = database;
    this.#table = table;
    this.#statements = statements;
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
  async insert(item: New, deadline: Deadline = noDeadline, claim?: IdempotencyClaim): Promise<Item> {
    const inserted = claim
      ? await this.#insertOnce(item, deadline, claim)
      : await this.#batches.add({ item }, deadline);
    deadline.count?.(1);
    return inserted as Item;
  }

  /** Waits for the end of an earlier creation with the same key: after that the database knows whether it succeeded. */
  async #insertOnce(item: New, deadline: Deadline, claim: IdempotencyClaim): Promise<Item> {
    const name = `${claim.keyId} ${claim.operation} ${claim.hash.toString('hex')}`;
    for (let earlier = this.#inProgress.get(name); earlier; earlier = this.#inProgress.get(name)) {
      await withTimeout(Math.min(deadline.at - performance.now(), longest), earlier, inUse);
    }
    const newcomer: Newcomer<New> = { item, claim, fingerprint: fingerprintOf(this.#table, item) };
    const sending = this.#send(newcomer, deadline);
    // The statement may go on when the deadline has passed.
    const end = sending.then(nothing, () => newcomer.sent?.then(nothing, nothing));
    this.#inProgress.set(
      name,
      end.finally(() => this.#inProgress.delete(name)),
    );
    return sending;
  }

  async #send(newcomer: Newcomer<New>, deadline: Deadline): Promise<Item> {
    const add = () => this.#batches.add(newcomer, deadline).catch(mayBeRepeated);
    // Once more when another process was quicker with the same key: the next statement sees its row.
    const item = (await add()) ?? (await add());
    if (item === null) throw inUse();
    newcomer.claim?.settled(newcomer.isReplay === true);
    return item;
  }

  /** @returns null for what has to be sent again */
  #insert(newcomers: Array<Newcomer<New>>): Promise<Array<Item | null | Error>> {
    if (newcomers.every(({ claim }) => claim === undefined)) return this.#insertPlain(newcomers);
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
    const claims = newcomers.map(({ claim }) => claim);
    const rows = await this.#database.rows<[place: string, fingerprint: string | null, generated: string]>(
      this.#statements.insertOnce,
      [
        ...this.#values(newcomers),
        claims.map((claim) => claim?.keyId ?? null),
        claims.map((claim) => claim?.operation ?? null),
        claims.map((claim) => claim?.hash ?? null),
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

const nothing = () => undefined;

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

/** The error while the first request with a key has no outcome. */
function inUse(): StoreError {
  const message = 'A request with this Idempotency-Key is still under way; send it again shortly.';
  return new StoreError('IDEMPOTENCY_KEY_IN_USE', message, { headers: { 'retry-after': '1' } });
}
