import type { Call, Claim } from '../call.ts';
import {
  type Batches,
  currentTransaction,
  type Database,
} from '../database/database.ts';
import {
  claimColumns,
  digestIn,
  findClaim,
  fingerprintOf,
  isTaken,
  nameOf,
  namesIn,
  reused,
  safeToRepeat,
} from '../database/idempotency.ts';
import { isJudgedAgain } from '../database/through.ts';
import { refusalIn, ruleBroken } from '../database/transaction.ts';
import { badInput, orError } from '../errors.ts';
import { int64FromDigits } from '../validation/int64.ts';
import { insertionsInto, lockOf, noLock } from './insert-statements.ts';
import { memberIn } from './rows/ownership.ts';
import type { Column, Table } from './rows/table.ts';
import { type Trace, writerOf } from './trace.ts';

/** An item to insert. */
interface Entry<New> {
  /** As its client gives it. */
  readonly given: New;
  /** Among the rows of its caller; as given when that is refused. */
  item: New;
  /** Those of its columns. */
  values?: unknown[];
  readonly claim?: Claim;
  readonly call: Call;
  /** The last statement with this entry, if one is sent. */
  sent?: Promise<unknown>;
  /** True when an earlier request has created it. */
  isReplay?: boolean;
  /** Of an earlier request, where the rules would refuse it today. */
  answer?: unknown;
}
/** The values that the database generated, as texts. */
type Generated = unknown[];
/** The fingerprint is that of an earlier input; null for a new row. */
type InsertedRow = [
  place: string,
  fingerprint: string | null,
  generated: string,
];

const idOf = (text: unknown) => int64FromDigits(`${text}`);

// One batch in flight per process: the next one fills while this one becomes
// durable.
const insertions = {
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

/** What a collection asks of a creation. */
interface Rules<New> {
  /**
   * Puts an item among the rows of its caller, where rows are those of callers.
   *
   * @throws StoreError
   */
  readonly claim?: ((item: New, call: Call) => Promise<New>) | undefined;
  readonly check?: Check<New> | undefined;
}

/** Inserts rows; concurrent insertions share one statement. */
export class Insertions<Item, New extends object> {
  readonly #batches: Batches<Entry<New>, Item>;
  readonly #locking: ReturnType<typeof insertionsInto>;
  readonly #inTransaction: ReturnType<typeof insertionsInto>;
  /** Those that it sets, then those that are copied, as it was judged by them. */
  readonly #given: readonly Column[];
  /** Those of the members that a creation sets. */
  readonly #names: string;

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly rules: Rules<New>,
    private readonly trace?: Trace,
  ) {
    this.#given = [...table.inserted, ...table.copied];
    this.#locking = insertionsInto(table, lockOf(table), trace);
    this.#inTransaction = insertionsInto(table, noLock, trace);
    this.#names = table.inserted.map(({ member }) => member).join();
    const run = (entries: Entry<New>[]) => this.#insert(entries);
    const collection = table.name;
    const names = { collection, operation: 'insert' };
    this.#batches = database.batched(run, { ...insertions, ...names });
  }

  /** See `Records.create`. */
  async insert(item: New, call: Call) {
    const entry = await this.#allowed(item, call);
    return await this.#insertAllowed(entry);
  }

  /** See `Records.createMany`. */
  async insertMany(items: ReadonlyArray<New | Error>, call: Call) {
    const entries = items.map((item) => this.#allowed(item, call));
    // They are sent together, so that their ids ascend.
    await Promise.allSettled(entries);
    const insertions = entries.map((allowed) =>
      allowed
        .then((entry) => this.#insertAllowed(entry))
        .catch((error: Error) => error),
    );
    return Promise.all(insertions);
  }

  /** The claim of the next creation, undefined without one. */
  #claimIn(call: Call) {
    const transaction = currentTransaction();
    if (!transaction) return call.nextClaim();
    transaction.assertCreates(this.table.name);
    // It has a claim as a whole.
    return undefined;
  }

  /**
   * The answer of a stored creation is given again, even if the rules would
   * refuse it today.
   */
  async #allowed(given: New | Error, call: Call) {
    const claim = this.#claimIn(call);
    if (given instanceof Error) throw given;
    const entry: Entry<New> = { given, item: given, claim, call };
    try {
      await this.#allow(entry);
    } catch (refusal) {
      entry.answer = claim && (await this.#answerTo(entry, claim));
      if (!entry.answer) throw refusal;
    }
    return entry;
  }

  async #allow(entry: Entry<New>) {
    const { claim, check } = this.rules;
    const { given, call } = entry;
    if (claim) entry.item = await claim(given, call);
    if (check) await check(entry.item, call);
    entry.values = this.#valuesOf(entry.item, this.#given);
  }

  /** The answer that is stored for a claim. */
  async #answerTo(entry: Entry<New>, claim: Claim) {
    const { database, table } = this;
    const { call } = entry;
    await database.claimed.untilEnded(claim, call);
    const queue = { collection: table.name, operation: 'find_claim' };
    const [found] = await database.inTurn(call, queue, () =>
      database.rows<[string, string]>(findClaim, claimColumns(claim)),
    );
    if (!found) return undefined;
    const [fingerprint, generated] = found;
    const known = Buffer.from(fingerprint, 'hex');
    return this.#storedItem(entry, JSON.parse(generated), known);
  }

  async #insertAllowed(entry: Entry<New>): Promise<Item> {
    const { answer, claim, call } = entry;
    if (answer) {
      call.count(1);
      call.replayed(true);
      return answer as Item;
    }
    const inserting = claim
      ? this.#insertOnce(entry, claim)
      : this.#batches.add(entry, call);
    try {
      const inserted = await inserting;
      call.count(1);
      return inserted;
    } catch (error) {
      throw refusalIn(this.database, error, { table: this.table.name });
    }
  }

  /**
   * Waits until the earlier creations with the same key end; then the database
   * contains their outcome. All that waited go on together and share a
   * statement.
   */
  async #insertOnce(entry: Entry<New>, claim: Claim) {
    const { claimed } = this.database;
    if (claimed.has(claim)) await claimed.untilEnded(claim, entry.call);
    const inserting = this.#insertRetryably(entry);
    // After its deadline the client has its 503, but the statement may still
    // run. A retry with this key waits until it ends, and gets 409 if its own
    // deadline is earlier.
    claimed.begin(
      claim,
      inserting.catch(() => entry.sent),
    );
    return inserting;
  }

  async #insertRetryably(entry: Entry<New>) {
    const { call } = entry;
    const add = () => this.#batches.add(entry, call);
    const inserted = await add()
      .catch((error) => {
        // Another process has stored the key first: the next statement sees it.
        if (isTaken(error)) return add();
        throw error;
      })
      .catch((error) => {
        throw safeToRepeat(error);
      });
    call.replayed(entry.isReplay === true);
    return inserted;
  }

  get #statements() {
    return currentTransaction() ? this.#inTransaction : this.#locking;
  }

  #insert(entries: Entry<New>[]) {
    const isCopied = this.table.copied.length > 0;
    const isPlain = !isCopied && entries.every(({ claim }) => !claim);
    if (isPlain) return this.#insertPlain(entries);
    const sent = this.#insertJudged(entries);
    for (const entry of entries) entry.sent = sent;
    return sent;
  }

  /**
   * With the rows to which they refer, the rights of the callers change: then
   * all are judged again, and those that are not refused are sent together, so
   * that their ids ascend.
   */
  async #insertJudged(
    entries: Entry<New>[],
    attempt = 1,
  ): Promise<Array<Item | Error>> {
    // All were refused.
    if (entries.length === 0) return [];
    try {
      return await this.#insertMixed(entries);
    } catch (error) {
      if (!isJudgedAgain(error, attempt)) throw error;
    }
    const judging = entries.map((entry) =>
      this.#allow(entry).catch((error: Error) => error),
    );
    const refusals = await Promise.all(judging);
    const allowed = entries.filter((_, at) => !refusals[at]);
    const inserted = await this.#insertJudged(allowed, attempt + 1);
    return refusals.map((one) => one ?? (inserted.shift() as Item | Error));
  }

  /** Inserts all or none. Ids ascend in the given order. */
  async #insertPlain(entries: Entry<New>[]) {
    const { several, one } = this.#statements;
    const given = entries.map((entry) => this.#parametersOf(entry));
    const isSingle = entries.length === 1;
    const statement = isSingle ? one : several;
    const values = isSingle ? given.flat() : columnsIn(given);
    const rows = await this.database.rows<Generated>(statement, values);
    // A trigger has dropped it.
    if (rows.length === 0) throw badInput(ruleBroken);
    // A sharded table returns them unordered.
    rows.sort(([a], [b]) => (idOf(a) < idOf(b) ? -1 : 1));
    return entries.map(({ item }, at) =>
      orError(() => this.#merged(item, rows[at] as Generated)),
    );
  }

  #merged(item: New, generated: Generated) {
    return this.table.mergeGenerated(item, generated) as Item;
  }

  /**
   * Inserts entries with a new key or without a key: all or none. Entries with
   * one key are inserted once.
   */
  async #insertMixed(entries: Entry<New>[]) {
    const byClaim = Map.groupBy(entries, (entry) =>
      entry.claim ? nameOf(entry.claim) : entry,
    );
    const groups = [...byClaim.values()];
    const firsts = groups.map(([first]) => first as Entry<New>);
    const claims = firsts.map((one) =>
      one.claim
        ? [...claimColumns(one.claim), this.#fingerprintOf(one.given)]
        : [null, null, null, null],
    );
    const given = firsts.map((one, at) => this.#parametersOf(one, claims[at]));
    const { once } = this.#statements;
    const rows = await this.database.rows<InsertedRow>(once, columnsIn(given));
    const outcomes = new Map<Entry<New>, Item | Error>();
    for (const [place, earlier, generated] of rows) {
      const at = Number(place) - 1;
      const fingerprint = earlier
        ? Buffer.from(earlier, 'hex')
        : (claims[at]?.[3] as Buffer);
      const row: Generated = JSON.parse(generated);
      for (const entry of groups[at] ?? []) {
        entry.isReplay = earlier !== null || entry !== firsts[at];
        // A failure concerns only this entry: the others are inserted.
        const outcome = entry.isReplay
          ? await this.#storedItem(entry, row, fingerprint).catch(
              (error: Error) => error,
            )
          : orError(() => this.#merged(entry.item, row));
        outcomes.set(entry, outcome);
      }
    }
    return entries.map((entry) => outcomes.get(entry) as Item | Error);
  }

  /** @param fingerprint of the input that was stored */
  async #storedItem(
    { given, item }: Entry<New>,
    generated: Generated,
    fingerprint: Buffer,
  ) {
    const { table, database } = this;
    // The release that stored it may have known fewer members. The others may
    // have defaults, so they are not compared, and the row has their values.
    // The release before this one compared the item, too, and appended the
    // digest of what was given to the names.
    const [known = '', digest] = namesIn(fingerprint).split(',;');
    const stored = [digestIn(fingerprint), digest];
    const isSame = [given, item].some((one) =>
      stored.includes(digestIn(this.#fingerprintOf(one, known))),
    );
    if (!isSame) throw reused();
    const hasAllColumns = generated.length === table.generated.length;
    const isClaimed = item !== given || !this.rules.claim;
    const isWhole = isClaimed && hasAllColumns;
    if (known === this.#names && isWhole) return this.#merged(item, generated);
    const id = generated.slice(0, 1);
    const [row] = await database.rows<Generated>(table.findOne, id);
    if (!row) throw reused();
    return table.decodeRow(row) as Item;
  }

  /** Of what the client has given, which is the same in all audiences. */
  #fingerprintOf(given: New, names = this.#names) {
    return fingerprintOf(this.#comparedOf(given, names), names);
  }

  /**
   * The values that are not null, sorted by name. They are the same in both
   * APIs, for any order of members.
   */
  #comparedOf(item: New, names: string) {
    const known = names.split(',');
    return this.table.inserted
      .filter(({ member }) => known.includes(member))
      .map((column): [string, unknown] => {
        const { member } = column;
        return [member, column.write(memberIn(item, member))];
      })
      .filter(([, value]) => value !== null)
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #valuesOf(item: New, columns: readonly Column[]) {
    return columns.map(({ member, write }) => write(memberIn(item, member)));
  }

  /** The last ones are who writes, where a creation leaves a trace. */
  #parametersOf({ values = [], call }: Entry<New>, claim: unknown[] = []) {
    const writer = this.trace && writerOf(call);
    return [...values, ...claim, ...Object.values(writer ?? {})];
  }
}

/** The values of each column of rows. */
function columnsIn(rows: unknown[][]) {
  const [first = []] = rows;
  return first.map((_, at) => rows.map((row) => row[at]));
}
