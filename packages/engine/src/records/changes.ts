import { isDeepStrictEqual } from 'node:util';
import type { Call } from '../call.ts';
import type { Batches, Database } from '../database/database.ts';
import { refusalIn, ruleBroken } from '../database/transaction.ts';
import { badInput, StoreError } from '../errors.ts';
import { once } from '../once.ts';
import type { Int64 } from '../validation/int64.ts';
import {
  type Collection,
  type Operation,
  statementOf,
  type Write,
} from './change-statements.ts';
import type { Check } from './insertions.ts';
import { memberIn, type View } from './rows/ownership.ts';
import { stamp } from './stamps.ts';
import { writerOf } from './trace.ts';

/**
 * The version that was read, and the members to set: null clears one, undefined
 * leaves it as it is.
 */
export type ChangeOf<Item> = { readonly version: number } & {
  readonly [Member in Exclude<keyof Item, 'id' | 'version'>]?:
    | Item[Member]
    | undefined;
};

type Row = Array<string | null>;

/**
 * The version before, then the columns after. They are null when nothing is
 * written. No row: no such id.
 */
type Written = [version: string | null, ...row: Row] | undefined;

/** Its rows, and what a module asks of changes and removals. */
interface Rules<Item> extends Collection {
  readonly check?: Check<object, Item>;
  readonly checkRemoval?: CheckRemoval<Item>;
}

/**
 * A rule for removals.
 *
 * @throws StoreError
 */
export type CheckRemoval<Item> = (stored: Item, call: Call) => Promise<void>;

// Two changes of one row must not share a statement: the second one needs the
// version that the first one leaves.
const writes = { isWrite: true, maxBatch: 1, maxInFlight: 4, blockTime: 1000 };
/** Of queues of reads. */
export const reads = {
  maxBatch: 32,
  minWindow: 8,
  maxInFlight: 4,
  blockTime: 10,
};

/**
 * Changes and removes rows, each with one statement, which also compares the
 * version.
 */
export class Changes<Item> {
  readonly #queues: Record<Operation, Batches<Write, Written>>;
  readonly #stored: Batches<string, Row | null>;

  constructor(
    private readonly database: Database,
    private readonly rules: Rules<Item>,
  ) {
    this.#queues = {
      change: this.#queue('change'),
      remove: this.#queue('remove'),
    };
    const read = (ids: string[]) => this.#readStored(ids);
    const named = { collection: rules.table.name, operation: 'find_stored' };
    this.#stored = database.batched(read, { ...reads, ...named });
  }

  #queue(operation: Operation) {
    const { database, rules } = this;
    const ofAll = once(() => statementOf(operation, rules, false));
    const ofTenant = once(() => statementOf(operation, rules, true));
    const run = async ([write]: Write[]) => {
      const { statement, slots } = write?.tenant ? ofTenant() : ofAll();
      const values = slots.map((slot) => write?.[slot]);
      const [row] = await database.rows(statement, values);
      return [row as Written];
    };
    const collection = rules.table.name;
    return database.batched(run, { ...writes, collection, operation });
  }

  async change(
    id: Int64 | undefined,
    { version, ...changes }: ChangeOf<Item>,
    call: Call,
    related: object,
  ) {
    const { check, owned, stamped, table } = this.rules;
    if (!table.version)
      throw new Error(
        `${table.name} has no version, so its rows cannot be changed.`,
      );
    const given = Object.entries(changes).filter(
      ([, value]) => value !== undefined,
    );
    if (given.length === 0)
      throw badInput('The change names no member to change.');
    const members = Object.fromEntries(
      given.map(([name, value]) => {
        const column = table.columns.find(({ member }) => member === name);
        return [name, column?.write(value)];
      }),
    );
    const all = { ...members, ...related, ...stamp(stamped, call) };
    const after = { ...changes, ...related };
    const seen = owned.changeable(after, call);
    const isRestricted = owned.restricts(call);
    const judge = async (stored: Item & object) => {
      owned.changeable(after, call, stored);
      if (isRestricted) owned.assertMakes(changes, stored, call);
      await check?.(changes, call, stored);
    };
    const json = JSON.stringify(all);
    const write: Write = { operation: 'change', id, version, changes: json };
    const isJudged = check || isRestricted;
    const written = !isJudged && (await this.#write(write, call, seen));
    // The change may take from its caller what it does not find.
    const row = written || (await this.#judged(write, call, judge));
    if (!row) return null;
    call.count(1);
    return table.decodeRow(row) as Item;
  }

  async remove(id: Int64 | undefined, version: number | undefined, call: Call) {
    const { checkRemoval, owned, table } = this.rules;
    const isComparable = version === undefined || table.version;
    if (!isComparable) throw badInput('It has no version to compare.');
    const isRestricted = owned.restricts(call);
    const judge = async (stored: Item & object) => {
      if (isRestricted) owned.assertDoes('remove', stored, call);
      await checkRemoval?.(stored, call);
    };
    const write: Write = { operation: 'remove', id, version };
    const isJudged = checkRemoval || isRestricted;
    const removed = await (isJudged
      ? this.#judged(write, call, judge)
      : this.#write(write, call, owned.requireViews(call, 'write')));
    if (!removed) return null;
    call.count(1);
    return true;
  }

  /** Judges an item, then writes it if its version and its callers are the same. */
  async #judged(
    write: Write,
    call: Call,
    judge: (stored: Item & object) => Promise<void>,
  ) {
    const { owned, table } = this.rules;
    const { id, version } = write;
    let tried: View | undefined;
    for (;;) {
      const stored = await this.stored(id, call, 'write');
      const own = stored && owned.viewOf(stored);
      if (!own || isDeepStrictEqual(own, tried)) return null;
      const current = memberIn(stored, `${table.version?.member}`) as number;
      if (version !== undefined && version !== current)
        throw staleVersion(current, version);
      await judge(stored);
      const judged = { ...write, version: current };
      const row = await this.#write(judged, call, [own]);
      if (row) return row;
      // It is gone, or of other callers.
      tried = own;
    }
  }

  /**
   * Reads from the primary an item that the call sees: a read node may have an
   * older version.
   */
  async stored(
    id: Int64 | string | undefined,
    call: Call,
    action?: 'read' | 'write',
  ) {
    const item = await this.storedOfAny(id, call);
    return item && this.rules.owned.sees(item, call, action) ? item : null;
  }

  /** The same of any owner. */
  async storedOfAny(id: Int64 | string | undefined, call: Call) {
    if (id === undefined) return null;
    const row = await this.#stored.add(`${id}`, call);
    return row && (this.rules.table.decodeRow(row) as Item & object);
  }

  async #readStored(ids: string[]) {
    const { find } = this.rules.table;
    const rows = await this.database.rows<Row>(find, [[...new Set(ids)]]);
    const byId = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => byId.get(id) ?? null);
  }

  /** @returns null when there is no such row */
  async #write(write: Write, call: Call, views: View[] | undefined) {
    const { operation, id, version } = write;
    if (id === undefined) return null;
    const { table, owned, trace } = this.rules;
    const named = views?.map(({ values }) => values[`${owned.tenant}`]);
    const [tenant, ...others] = new Set(named);
    const all: Write = {
      ...write,
      ...(trace && writerOf(call)),
      tenant: others.length > 0 ? undefined : tenant,
      views: views?.map(({ values }) => JSON.stringify(values)),
    };
    const queue = this.#queues[operation];
    const written = await queue.add(all, call).catch((error) => {
      const isRemoval = operation === 'remove';
      throw refusalIn(this.database, error, { table: table.name, isRemoval });
    });
    if (!written) return null;
    const [current, ...row] = written;
    if (row[0] === null) {
      const stored = Number(current);
      const isStale = version !== undefined && version !== stored;
      // Otherwise a trigger has dropped the row.
      throw isStale ? staleVersion(stored, version) : badInput(ruleBroken);
    }
    trace?.tell();
    return row;
  }
}

/** @param given the version that the client has read */
export function staleVersion(version: number, given: number) {
  const message = `It has version ${version}, not ${given}: read it again.`;
  return new StoreError('CONFLICT', message, { details: { version } });
}
