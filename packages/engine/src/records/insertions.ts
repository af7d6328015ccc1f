import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Call, Claim } from '../call.ts';
import {
  type Batches,
  currentTransaction,
  type Database,
  type Statement,
} from '../database/database.ts';
import {
  claimColumns,
  findClaim,
  fingerprintOf,
  inUse,
  nameOf,
  namesIn,
  reused,
  safeToRepeat,
} from '../database/idempotency.ts';
import { refusalIn, ruleBroken } from '../database/transaction.ts';
import { badInput } from '../errors.ts';
import type { Column, Table } from './rows/table.ts';
import { type Trace, writerAt, writerOf, writersAt } from './trace.ts';

/** An item to insert. */
interface Entry<New> {
  readonly item: New;
  readonly claim?: Claim;
  readonly call: Call;
  /** Settles when the last statement with this entry ends. */
  sent?: Promise<unknown>;
  /** True when an earlier request has created it. */
  isReplay?: boolean;
}
/** The values that the database generated, as texts. */
type Generated = Array<string | null>;
/** The fingerprint is that of an earlier input; null for a new row. */
type InsertedRow = [
  place: string,
  fingerprint: string | null,
  generated: string,
];

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

/** Inserts rows; concurrent insertions share one statement. */
export class Insertions<Item, New extends object> {
  readonly #batches: Batches<Entry<New>, Item | null>;
  readonly #statements: ReturnType<typeof insertionsInto>;
  /** Those of the members that a creation sets. */
  readonly #names: string;

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly check?: Check<New>,
    private readonly trace?: Trace,
  ) {
    this.#statements = insertionsInto(table, trace);
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
   * The answer of a stored creation is given again, even if the check would
   * refuse it today.
   */
  async #allowed(item: New | Error, call: Call): Promise<Entry<New>> {
    const claim = this.#claimIn(call);
    if (item instanceof Error) throw item;
    await this.check?.(item, call).catch(async (refusal) => {
      const isStored = claim && (await this.#isStored(claim, call));
      if (!isStored) throw refusal;
    });
    return { item, claim, call };
  }

  async #isStored(claim: Claim, call: Call) {
    const { database, table } = this;
    await database.claimed.untilEnded(claim, call);
    const queue = { collection: table.name, operation: 'find_claim' };
    const found = await database.inTurn(call, queue, () =>
      database.rows(findClaim, claimColumns(claim)),
    );
    return found.length > 0;
  }

  async #insertAllowed(entry: Entry<New>) {
    const { claim, call } = entry;
    const inserting = claim
      ? this.#insertOnce(entry, claim)
      : this.#batches.add(entry, call);
    try {
      const inserted = await inserting;
      call.count(1);
      return inserted as Item;
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
    const add = () =>
      this.#batches.add(entry, call).catch((error) => {
        throw safeToRepeat(error);
      });
    // Retries once when another process stored the same key first: the next
    // statement sees its row.
    const inserted = (await add()) ?? (await add());
    if (!inserted) throw inUse();
    call.replayed(entry.isReplay === true);
    return inserted;
  }

  /**
   * @returns null for an entry whose key another process stored after the
   *   snapshot of this statement
   */
  #insert(entries: Entry<New>[]) {
    const hasClaims = entries.some(({ claim }) => claim !== undefined);
    if (!hasClaims) return this.#insertPlain(entries);
    const sent = this.#insertMixed(entries);
    for (const entry of entries) entry.sent = sent;
    return sent;
  }

  /** Inserts all or none. Ids ascend in the given order. */
  async #insertPlain(entries: Entry<New>[]) {
    const { insert, insertOne } = this.#statements;
    const columns = [...this.#columnsOf(entries), ...this.#writersOf(entries)];
    const isSingle = entries.length === 1;
    const statement = this.#ordered(isSingle ? insertOne : insert);
    const values = isSingle ? columns.flat() : columns;
    const rows = await this.database.rows<Generated>(statement, values);
    // A trigger has dropped it.
    if (rows.length === 0) throw badInput(ruleBroken);
    // A sharded table returns them unordered.
    rows.sort(([a], [b]) => Number(BigInt(`${a}`) - BigInt(`${b}`)));
    return entries.map(({ item }, at) =>
      this.#merged(item, rows[at] as Generated),
    );
  }

  /** A transaction has seen to its order (`database/order.ts`). */
  #ordered(statement: Statement) {
    if (!currentTransaction()) return statement;
    const text = statement.text.replace(lockOf(this.table), '');
    return { ...statement, text };
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
    const claims = firsts.map(({ item, claim }) =>
      claim ? [...claimColumns(claim), this.#fingerprintOf(item)] : [],
    );
    const values = [
      ...this.#columnsOf(firsts),
      ...[0, 1, 2, 3].map((at) => claims.map((claim) => claim[at])),
      ...this.#writersOf(firsts),
    ];
    const { insertOnce } = this.#statements;
    const rows = await this.database.rows<InsertedRow>(insertOnce, values);
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
          ? await this.#storedItem(entry.item, row, fingerprint).catch(
              (error: Error) => error,
            )
          : this.#merged(entry.item, row);
        outcomes.set(entry, outcome);
      }
    }
    return entries.map((entry) => outcomes.get(entry) ?? null);
  }

  /** @param fingerprint of the input that was stored */
  async #storedItem(item: New, generated: Generated, fingerprint: Buffer) {
    const { table, database } = this;
    // The release that stored it may have known fewer members. The others may
    // have defaults, so they are not compared, and the row has their values.
    const known = namesIn(fingerprint) || this.#names;
    const own = this.#fingerprintOf(item, known);
    const { length } = fingerprint;
    if (!own.subarray(0, length).equals(fingerprint)) throw reused();
    const hasAllColumns = generated.length === table.generated.length;
    if (known === this.#names && hasAllColumns)
      return this.#merged(item, generated);
    const id = generated.slice(0, 1);
    const [row] = await database.rows<Generated>(table.findOne, id);
    if (!row) throw reused();
    return table.decodeRow(row) as Item;
  }

  /**
   * Of the values that are not null, sorted by name. It is the same in both
   * APIs, for any order of members.
   */
  #fingerprintOf(item: New, names = this.#names) {
    const known = names.split(',');
    const values = this.table.inserted
      .filter(({ member }) => known.includes(member))
      .map((column): [string, unknown] => {
        const { member } = column;
        return [member, column.write(item[member as keyof New])];
      })
      .filter(([, value]) => value !== null)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return fingerprintOf(values, names);
  }

  /** The values of each column. */
  #columnsOf(entries: Entry<New>[]) {
    return this.table.inserted.map((column) =>
      entries.map(({ item }) => column.write(item[column.member as keyof New])),
    );
  }

  /** The values of `writerOf`, where a creation leaves a trace. */
  #writersOf(entries: Entry<New>[]) {
    if (!this.trace) return [];
    const writers = entries.map(({ call }) => writerOf(call));
    return [0, 1, 2].map((at) => writers.map((writer) => writer[at]));
  }
}

/**
 * The statements of insertions, each for a whole batch; `insertOne` for a batch
 * of one, because arrays cost PostgreSQL a third of a small statement. They are
 * SQL because no query builder supports `unnest`, and an EntityManager costs
 * several times as much as the statement (`bench/README.md`).
 */
function insertionsInto(table: Table, trace?: Trace) {
  return {
    insert: insertionInto(table, false, trace),
    insertOne: insertionInto(table, true, trace),
    insertOnce: insertOnceInto(table, trace),
  };
}

/**
 * The lock makes rows visible in the order of their ids, so a reader that has
 * passed id 7 never misses a later 6. It is held from before the first id is
 * drawn until the commit is visible.
 */
function insertionInto(table: Table, isSingle: boolean, trace?: Trace) {
  const { name, inserted, generated } = table;
  const names = inserted.map(({ name }) => name).join(', ');
  const arrays = inserted.map(
    ({ parameter }, at) => `$${at + 1}::${parameter}[]`,
  );
  const inputs = `, unnest(${arrays.join(', ')}) with ordinality
          as input (${names}, "#place")
        order by input."#place"`;
  const values = inserted.map((column, at) => {
    const given = isSingle ? `$${at + 1}` : `input.${column.name}`;
    return orDefault(column, `${given}::${column.type}`);
  });
  const returned = generated
    .map(({ text }, at) => `${text} as "#${at}"`)
    .join(', ');
  const lock = `lock as materialized (select ${lockOf(table)})`;
  const insertion = `insert into ${quoted(name)} (${names})
        select ${values.join(', ')} from lock${isSingle ? '' : inputs}
        returning ${returned}${trace?.returned ?? ''}`;
  const at = inserted.length + 1;
  const stored = isSingle
    ? trace?.store('created', 'inserted', writerAt(at))
    : trace?.store('created', placed, writersAt(at));
  const shown = trace ? generated.map((_, at) => `"#${at}"`) : '*';
  const all = isSingle ? '' : ` where ${areAllIn('cardinality($1)')}`;
  const checked = `with ${lock}, inserted as (${insertion})${stored ?? ''}
      select ${shown} from inserted${all}`;
  return {
    isWrite: true,
    name: `insert_${isSingle ? 'one_' : ''}${name}`,
    text: isSingle && !trace ? `with ${lock} ${insertion}` : checked,
  };
}

const lockOf = ({ name }: Table) =>
  `pg_advisory_xact_lock(hashtext(${literal(name)}))`;

/** They are returned as they are inserted. */
const placed = `(select *, row_number() over () as "#place" from inserted) as placed`;

/**
 * SQL that is true when a statement has inserted this many rows. Otherwise a
 * trigger or a rule has dropped some: dividing by zero rolls all back, and
 * smaller parts find the dropped ones.
 */
function areAllIn(count: string) {
  return `1 / ((select count(*) from inserted) = ${count})::int = 1`;
}

function orDefault({ fallback }: Column, value: string) {
  return fallback ? `coalesce(${value}, ${fallback})` : value;
}

/**
 * Inserts rows and their idempotency claims, if any, atomically.
 *
 * The last parameters are the claims' key ids, operations, hashes and
 * fingerprints, all null for a row without a claim; then those of its trace, if
 * any. It returns one row per place (from 1): null and the generated values, as
 * a JSON array of texts; for a known claim, its fingerprint in hexadecimal and
 * the values generated then. If another process stores the same claim after
 * this statement's snapshot, its place is missing in the result: its item was
 * not inserted, and a repetition finds the claim.
 */
function insertOnceInto(
  { name, inserted, generated }: Table,
  trace?: Trace,
): Statement {
  const table = quoted(name);
  const names = inserted.map((column) => column.name);
  const types = [
    ...inserted.map(({ parameter }) => parameter),
    'int',
    'text',
    'bytea',
    'bytea',
  ];
  const values = inserted.map((column) => {
    const { name, type } = column;
    return `${orDefault(column, `${name}::${type}`)} as ${name}`;
  });
  const identity = '"#key", "#operation", "#hash"';
  const rows = `(select inserted.*, "#place" from inserted join accepted on accepted.id = "#id") as placed`;
  const writers = writersAt(types.length + 1);
  const stored = trace?.store('created', rows, writers);
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // The cast is for Citus, which cannot store a column of type void. `limit`
    // makes PostgreSQL use the index for each claim; a join would scan the
    // whole table until it has been analysed.
    text: `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text),
      input as materialized (
        select input.* from lock, unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')})
          with ordinality as input (${[...names, identity].join(', ')}, "#fingerprint", "#place")),
      known as materialized (
        select "#place", stored.fingerprint, stored.generated
        from input cross join lateral (
          select fingerprint, generated from idempotency_key where (key_id, operation, hash) = (${identity}) limit 1
        ) as stored),
      ready as materialized (
        select *, array[${generated.map(({ text }) => text).join(', ')}] as "#generated" from (
          select nextval((select pg_get_serial_sequence(${literal(table)}, 'id')::regclass)) as id,
            ${[...values, identity].join(', ')}, "#fingerprint", "#place"
          from (select * from input where "#place" not in (select "#place" from known) order by "#place") as unknown
        ) as drawn),
      claimed as (
        insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
        select ${identity}, "#fingerprint", "#generated" from ready where "#hash" is not null
        on conflict do nothing
        returning key_id, operation, hash),
      accepted as materialized (
        select * from ready
        where "#hash" is null or (${identity}) in (select key_id, operation, hash from claimed)),
      inserted as (
        insert into ${table} (${['id', ...names].join(', ')})
        select ${['id', ...names].join(', ')} from accepted order by "#place"
        returning id${trace?.returned ?? ''})${stored ?? ''}
      select "#place", null as fingerprint, to_json("#generated")::text from accepted
      where ${areAllIn('(select count(*) from accepted)')}
      union all
      select "#place", encode(fingerprint, 'hex'), to_json(generated)::text from known`,
  };
}
