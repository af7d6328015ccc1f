import { hash } from 'node:crypto';
import type { Call, Claim } from '../call.ts';
import { retryable, reused } from '../database/claims.ts';
import type { Batches, Database } from '../database/database.ts';
import { currentTransaction } from '../database/transaction.ts';
import { withTimeout } from '../database/with-timeout.ts';
import { StoreError } from '../errors.ts';
import type { Statements } from './statements.ts';
import type { Table } from './table.ts';

/** An item to insert. */
interface Entry<New> {
  readonly item: New;
  readonly claim?: Claim | undefined;
  /** See `fingerprintOf`. */
  fingerprint?: string;
  /** Settles when the last statement with this entry ends. */
  sent?: Promise<unknown>;
  isReplay?: boolean;
}

// One batch in flight per process: the next one fills while this one becomes
// durable.
const writes = {
  isWrite: true,
  maxBatch: 256,
  maxInFlight: 1,
  blockTime: 1000,
};

/**
 * A rule for the members of a creation, and for those that a change sets.
 *
 * @param stored the item before the change; undefined for a creation
 * @throws StoreError
 */
export type Check<New, Item = never> = (
  members: Partial<New>,
  call: Call,
  stored?: Item,
) => Promise<void>;

const storedClaim = {
  name: 'stored_claim',
  text: 'select 1 from idempotency_key where (key_id, operation, hash) = ($1::int, $2, $3)',
};

/** Inserts rows; concurrent insertions share one statement. */
export class Insertions<Item, New extends object> {
  readonly #batches: Batches<Entry<New>, Item | null>;
  /** The creations in progress, by idempotency key. */
  readonly #inProgress = new Map<string, Promise<unknown>>();

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly statements: Statements,
    private readonly check?: Check<New>,
  ) {
    this.#batches = database.batched(
      (entries: Array<Entry<New>>) => this.#insert(entries),
      {
        ...writes,
        collection: table.name,
        operation: 'insert',
      },
    );
  }

  /** See `Records.create`. */
  async insert(item: New, call: Call): Promise<Item> {
    const claim = this.#claimIn(call);
    await this.#assertAllowed(item, claim, call);
    return this.#insertAllowed({ item, claim }, call);
  }

  /** See `Records.createMany`. */
  async insertMany(
    items: ReadonlyArray<New | Error>,
    call: Call,
  ): Promise<Array<Item | Error>> {
    const ready = items.map(async (item): Promise<Entry<New>> => {
      const claim = this.#claimIn(call);
      if (item instanceof Error) throw item;
      await this.#assertAllowed(item, claim, call);
      return { item, claim };
    });
    // They are sent together, so that their ids ascend.
    await Promise.allSettled(ready);
    const inserted = ready.map(async (entry) =>
      this.#insertAllowed(await entry, call),
    );
    return Promise.all(
      inserted.map((one) => one.catch((error: Error) => error)),
    );
  }

  /** The claim of the next creation, undefined without one. */
  #claimIn(call: Call): Claim | undefined {
    const transaction = currentTransaction();
    transaction?.assertCreates(this.table.name);
    // A transaction has a claim as a whole.
    return transaction ? undefined : call.takeClaim();
  }

  /**
   * The answer of a creation that was stored is given again, even if the check
   * has come to refuse it.
   */
  async #assertAllowed(item: New, claim: Claim | undefined, call: Call) {
    await this.check?.(item, call).catch(async (refusal) => {
      if (!claim || !(await this.#isStored(claim))) throw refusal;
    });
  }

  async #isStored(claim: Claim): Promise<boolean> {
    await this.#inProgress.get(nameOf(claim));
    const key = [claim.keyId, claim.operation, claim.hash];
    return (await this.database.rows(storedClaim, key)).length > 0;
  }

  async #insertAllowed(entry: Entry<New>, call: Call): Promise<Item> {
    const { claim } = entry;
    const inserting = claim
      ? this.#insertOnce(entry, claim, call)
      : this.#batches.add(entry, call);
    const inserted = await inserting.catch((error) => {
      throw this.table.refusalOf(error);
    });
    call.count(1);
    return inserted as Item;
  }

  /**
   * Waits until an earlier creation with the same key ends; then the database
   * contains its outcome.
   */
  async #insertOnce(
    entry: Entry<New>,
    claim: Claim,
    call: Call,
  ): Promise<Item> {
    const name = nameOf(claim);
    for (
      let earlier = this.#inProgress.get(name);
      earlier;
      earlier = this.#inProgress.get(name)
    ) {
      await withTimeout(call.at - performance.now(), earlier, inUse);
    }
    entry.fingerprint = fingerprintOf(this.table, entry.item);
    const sending = this.#insertRetryably(entry, call);
    // After its deadline the client has its 503, but the statement may still
    // run. Until it ends, a retry with this key waits, and then gets 409.
    const end = sending.then(nothing, () => entry.sent?.then(nothing, nothing));
    this.#inProgress.set(
      name,
      end.finally(() => this.#inProgress.delete(name)),
    );
    return sending;
  }

  async #insertRetryably(entry: Entry<New>, call: Call): Promise<Item> {
    const add = () =>
      this.#batches.add(entry, call).catch((error) => {
        throw retryable(error);
      });
    // Retries once when another process stored the same key first: the next
    // statement sees its row.
    const item = (await add()) ?? (await add());
    if (item === null) throw inUse();
    call.replayed(entry.isReplay === true);
    return item;
  }

  /**
   * @returns null for an entry whose key another process stored after the
   *   snapshot of this statement
   */
  #insert(entries: Array<Entry<New>>): Promise<Array<Item | null | Error>> {
    if (entries.every(({ claim }) => claim === undefined))
      return this.#insertPlain(entries);
    const sent = this.#insertMixed(entries);
    for (const entry of entries) entry.sent = sent;
    return sent;
  }

  /** Inserts all or none. Ids ascend in the given order. */
  async #insertPlain(entries: Array<Entry<New>>): Promise<Item[]> {
    const values = this.#values(entries);
    const { insert, insertOne } = this.statements;
    const rows = await (entries.length === 1
      ? this.database.rows<Array<string | null>>(insertOne, values.flat())
      : this.database.rows<Array<string | null>>(insert, values));
    rows.sort(([a], [b]) => compareDigits(`${a}`, `${b}`));
    return entries.map(
      ({ item }, place) =>
        this.table.mergeGenerated(item, rows[place] as unknown[]) as Item,
    );
  }

  /** Inserts entries with a new key or without a key: all or none. */
  async #insertMixed(
    entries: Array<Entry<New>>,
  ): Promise<Array<Item | null | Error>> {
    const claims = entries.map(({ claim }) => claim);
    const rows = await this.database.rows<
      [place: string, fingerprint: string | null, generated: string]
    >(this.statements.insertOnce, [
      ...this.#values(entries),
      claims.map((claim) => claim?.keyId ?? null),
      claims.map((claim) => claim?.operation ?? null),
      claims.map((claim) => claim?.hash ?? null),
      entries.map(({ fingerprint }) =>
        fingerprint ? Buffer.from(fingerprint, 'hex') : null,
      ),
    ]);
    const outcomes: Array<Item | null | Error> = entries.map(() => null);
    for (const [place, fingerprint, generated] of rows) {
      const entry = entries[Number(place) - 1] as Entry<New>;
      entry.isReplay = fingerprint !== null;
      // The release that stored it may have known fewer members. The others may
      // have defaults, so they are not compared, and the row has their values.
      const known = Buffer.from(fingerprint?.slice(64) ?? '', 'hex').toString();
      const own = known
        ? fingerprintOf(this.table, entry.item, known)
        : entry.fingerprint;
      const isReused = fingerprint !== null && !own?.startsWith(fingerprint);
      const isWhole = own === entry.fingerprint;
      // A later failure concerns only this entry: the others are inserted.
      outcomes[Number(place) - 1] = isReused
        ? reused()
        : await this.#itemOf(entry.item, JSON.parse(generated), isWhole).catch(
            (error: Error) => error,
          );
    }
    return outcomes;
  }

  /**
   * Reads the row from the table when an earlier release with fewer columns
   * inserted it.
   *
   * @param isWhole whether all members of the item are those of the row
   */
  async #itemOf(
    item: New,
    generated: Array<string | null>,
    isWhole: boolean,
  ): Promise<Item | Error> {
    if (isWhole && generated.length === this.table.generated.length)
      return this.table.mergeGenerated(item, generated) as Item;
    const [row] = await this.database.rows<Array<string | null>>(
      this.statements.findOne,
      [generated[0]],
    );
    return row ? (this.table.decodeRow(row) as Item) : reused();
  }

  #values(entries: Array<Entry<New>>): unknown[][] {
    return this.table.inserted.map((column) =>
      entries.map(({ item }) => column.write(item[column.member as keyof New])),
    );
  }
}

const nothing = () => undefined;

const nameOf = ({ keyId, operation, hash }: Claim) =>
  `${keyId} ${operation} ${hash.toString('hex')}`;

/** Compares ids beyond 2^53, too. A sharded table returns them unordered. */
function compareDigits(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/**
 * Hashes the values that are not null, sorted by name, and appends the names of
 * all members. The result is the same in both APIs, for any order of members.
 */
function fingerprintOf(
  { inserted }: Table,
  item: object,
  names = inserted.map(({ member }) => member).join(),
): string {
  const known = names.split(',');
  const values = inserted
    .filter(({ member }) => known.includes(member))
    .map((column): [string, unknown] => {
      const value = (item as Record<string, unknown>)[column.member];
      return [column.member, column.write(value)];
    })
    .filter(([, value]) => value !== null)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const digest = hash('sha256', JSON.stringify(values), 'hex');
  return digest + Buffer.from(names).toString('hex');
}

/** The error while the first request with a key is in progress. */
export function inUse(): StoreError {
  const message =
    'A request with this Idempotency-Key is still under way; send it again shortly.';
  return new StoreError('IDEMPOTENCY_KEY_IN_USE', message, {
    headers: { 'retry-after': '1' },
  });
}
