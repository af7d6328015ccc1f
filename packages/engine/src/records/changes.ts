import { isDeepStrictEqual } from 'node:util';
import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Call } from '../call.ts';
import type { Batches, Database } from '../database/database.ts';
import { unlessOvertaken } from '../database/through.ts';
import { refusalIn, ruleBroken } from '../database/transaction.ts';
import { badInput, StoreError } from '../errors.ts';
import type { Int64 } from '../validation/int64.ts';
import { wholeTime } from '../validation/kinds.ts';
import type { Check } from './insertions.ts';
import { memberIn, type Ownership, type View } from './rows/ownership.ts';
import type { Table } from './rows/table.ts';
import { type Stamped, stamp } from './stamps.ts';
import { type Trace, writerAt, writerOf } from './trace.ts';

/**
 * The version that was read, and the members to set: null clears one, undefined
 * leaves it as it is.
 */
export type ChangeOf<Item> = { readonly version: number } & {
  readonly [Member in Exclude<keyof Item, 'id' | 'version'>]?:
    | Item[Member]
    | undefined;
};

/**
 * The version before, then the columns after. They are null when nothing is
 * written. No row: no such id.
 */
type Written =
  | [version: string | null, ...row: Array<string | null>]
  | undefined;

type Row = Array<string | null>;
type Write = [
  id: Int64 | undefined,
  version: number | undefined,
  ...more: string[],
];

/** What a module asks of changes and removals. */
interface Rules<Item> {
  readonly owned: Ownership;
  readonly check?: Check<object, Item>;
  readonly checkRemoval?: CheckRemoval<Item>;
  readonly stamped: Stamped;
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
  readonly #changes: Batches<unknown[], Written>;
  readonly #removals: Batches<unknown[], Written>;
  readonly #stored: Batches<string, Row | null>;

  constructor(
    private readonly database: Database,
    private readonly table: Table,
    private readonly rules: Rules<Item>,
    private readonly trace?: Trace,
  ) {
    const { owned } = rules;
    this.#changes = this.#queue('change', changeOf(table, rules, trace));
    this.#removals = this.#queue('remove', removalOf(table, owned, trace));
    const read = (ids: string[]) => this.#readStored(ids);
    const named = { collection: table.name, operation: 'find_stored' };
    this.#stored = database.batched(read, { ...reads, ...named });
  }

  #queue(operation: string, text: string) {
    const { name: collection } = this.table;
    const name = `${operation}_${collection}`;
    const run = async (batch: unknown[][]) => {
      const [tenant, ...write] = batch.flat();
      const statement = { name, isWrite: true, text };
      if (tenant !== undefined) {
        // Citus locks a row of a tenant by this equation.
        const column = this.table.column(`${this.rules.owned.tenant}`);
        const own = `where id = $1 and ${column.name} = $${write.push(tenant)}`;
        statement.name += '_of_tenant';
        statement.text = text.replaceAll('where id = $1', () => own);
      }
      const [row] = await this.database.rows(statement, write);
      return [row as Written];
    };
    return this.database.batched(run, { ...writes, collection, operation });
  }

  async change(
    id: Int64 | undefined,
    { version, ...changes }: ChangeOf<Item>,
    call: Call,
    related: object,
  ) {
    if (!this.table.version)
      throw new Error(
        `${this.table.name} has no version, so its rows cannot be changed.`,
      );
    const given = Object.entries(changes).filter(
      ([, value]) => value !== undefined,
    );
    if (given.length === 0)
      throw badInput('The change names no member to change.');
    const { check, owned, stamped } = this.rules;
    const { columns } = this.table;
    const members = Object.fromEntries(
      given.map(([name, value]) => {
        const column = columns.find(({ member }) => member === name);
        return [name, column?.write(value)];
      }),
    );
    const all = { ...members, ...related, ...stamp(stamped, call) };
    const json = JSON.stringify(all);
    const after = { ...changes, ...related };
    const seen = owned.changeable(after, call);
    const isRestricted = owned.restricts(call);
    const judge = async (stored: Item & object) => {
      owned.changeable(after, call, stored);
      if (isRestricted) owned.assertMakes(changes, stored, call);
      await check?.(changes, call, stored);
    };
    const write: Write = [id, version, json];
    const isJudged = check || isRestricted;
    const written =
      !isJudged && (await this.#write(this.#changes, call, write, seen));
    // The change may take from its caller what it does not find.
    const row =
      written || (await this.#judged(this.#changes, call, write, judge));
    if (!row) return null;
    call.count(1);
    return this.table.decodeRow(row) as Item;
  }

  async remove(id: Int64 | undefined, version: number | undefined, call: Call) {
    const isComparable = version === undefined || this.table.version;
    if (!isComparable) throw badInput('It has no version to compare.');
    const { checkRemoval, owned } = this.rules;
    const isRestricted = owned.restricts(call);
    const judge = async (stored: Item & object) => {
      if (isRestricted) owned.assertDoes('remove', stored, call);
      await checkRemoval?.(stored, call);
    };
    const write: Write = [id, version];
    const removed = await (checkRemoval || isRestricted
      ? this.#judged(this.#removals, call, write, judge)
      : this.#write(
          this.#removals,
          call,
          write,
          owned.requireViews(call, 'write'),
        ));
    return removed && true;
  }

  /** Judges an item, then writes it if its version and its callers are the same. */
  async #judged(
    queue: Batches<unknown[], Written>,
    call: Call,
    [id, version, ...more]: Write,
    judge: (stored: Item & object) => Promise<void>,
  ) {
    const { rules, table } = this;
    let tried: View | undefined;
    for (;;) {
      const stored = await this.stored(id, call, 'write');
      const own = stored && rules.owned.viewOf(stored);
      if (!own || isDeepStrictEqual(own, tried)) return null;
      const current = memberIn(stored, `${table.version?.member}`) as number;
      if (version !== undefined && version !== current)
        throw staleVersion(current, version);
      await judge(stored);
      const write: Write = [id, current, ...more];
      const row = await this.#write(queue, call, write, [own]);
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
    return row && (this.table.decodeRow(row) as Item & object);
  }

  async #readStored(ids: string[]) {
    const { find } = this.table;
    const rows = await this.database.rows<Row>(find, [[...new Set(ids)]]);
    const byId = new Map(rows.map((row) => [row[0], row]));
    return ids.map((id) => byId.get(id) ?? null);
  }

  /** @returns null when there is no such row */
  async #write(
    queue: Batches<unknown[], Written>,
    call: Call,
    write: Write,
    views: View[] | undefined,
  ) {
    const [id, version] = write;
    if (id === undefined) return null;
    const { database, rules, table } = this;
    const { owned } = rules;
    const named = views?.map(({ values }) => values[`${owned.tenant}`]);
    const [tenant, ...others] = new Set(named);
    const all: unknown[] = [others.length > 0 ? undefined : tenant, ...write];
    const seen = views?.map(({ values }) => JSON.stringify(values));
    if (owned.members.length > 0) all.push(seen ?? null);
    if (this.trace) all.push(...writerOf(call));
    const written = await queue.add(all, call).catch((error) => {
      const isRemoval = queue === this.#removals;
      throw refusalIn(database, error, { table: table.name, isRemoval });
    });
    if (!written) return null;
    const [current, ...row] = written;
    if (row[0] === null) {
      const stored = Number(current);
      const isStale = version !== undefined && version !== stored;
      // Otherwise a trigger has dropped the row.
      throw isStale ? staleVersion(stored, version) : badInput(ruleBroken);
    }
    this.trace?.tell();
    return row;
  }
}

/** @param given the version that the client has read */
export function staleVersion(version: number, given: number) {
  const message = `It has version ${version}, not ${given}: read it again.`;
  return new StoreError('CONFLICT', message, { details: { version } });
}

/**
 * Sets the members that the JSON object $3 has. Those of other rows are set by
 * triggers.
 */
function changeOf(
  table: Table,
  { owned, stamped }: Rules<never>,
  trace?: Trace,
) {
  const { name, columns, version } = table;
  const given = (member: string) => `$3::jsonb ->> ${literal(member)}`;
  const now = stamped.times ? 'changedAt' : undefined;
  const changes = columns
    .filter((column) => column.member !== 'id')
    .filter((column) => column !== version && !column.path)
    .filter(({ member }) => !owned.kept.includes(member))
    .map(({ member, name, type }) => {
      if (member === now) return `${name} = ${wholeTime('clock_timestamp()')}`;
      const isGiven = `$3::jsonb ? ${literal(member)}`;
      return `${name} = case when ${isGiven} then (${given(member)})::${type} else ${name} end`;
    });
  // Version 1 follows the greatest one.
  const set = [
    ...changes,
    `${version?.name} = "#version" % 2147483647 + 1`,
  ].join(', ');
  const returned = columns
    .map(({ text }, at) => `${text} as "#${at}"`)
    .join(', ');
  const areAsJudged = columns.flatMap(({ member, path }, at) => {
    if (!path) return [];
    const by = columns.indexOf(table.column(path.by));
    // A trigger of a module may have changed the relation.
    return unlessOvertaken(
      `"#0" is not null and $3::jsonb ? ${literal(member)} and "#${by}" is not distinct from ${given(path.by)} and "#${at}" is distinct from ${given(member)}`,
    );
  });
  const after = trace
    ? `, ${trace.version} as "#next", ${trace.members} as "#after"${trace.heirs}`
    : '';
  const text = writeOf(
    table,
    `update ${quoted(name)} set ${set} from "#found" where id = $1 and id = "#id" and "#version" = $2
    returning ${returned}${after}`,
    seenIn(table, owned, '$4'),
    trace && {
      trace,
      action: 'changed',
      returned: columns.map((_, at) => `"#${at}"`).join(', '),
      at: owned.members.length > 0 ? 5 : 4,
    },
  );
  if (areAsJudged.length === 0) return text;
  return `${text} where ${areAsJudged.join(' and ')}`;
}

function removalOf(table: Table, owned: Ownership, trace?: Trace) {
  return writeOf(
    table,
    `delete from ${quoted(table.name)} using "#found"
    where id = $1 and id = "#id" and ($2::int is null or "#version" = $2) returning id::text`,
    seenIn(table, owned, '$3'),
    trace && {
      trace,
      action: 'removed',
      returned: 'id',
      at: owned.members.length > 0 ? 4 : 3,
    },
  );
}

/**
 * SQL for the rows that a call may write, with their members by audience, as
 * JSON, in a parameter: null for all rows.
 */
function seenIn({ columns }: Table, { members }: Ownership, parameter: string) {
  const own = columns.filter(({ member }) => members.includes(member));
  if (own.length === 0) return undefined;
  const row = own.map(({ member, name }) => `${literal(member)}, ${name}`);
  const views = `${parameter}::jsonb[]`;
  return `(${views} is null or jsonb_build_object(${row}) @> any(${views}))`;
}

interface Traced {
  readonly trace: Trace;
  readonly action: 'changed' | 'removed';
  /** The columns of the answer. */
  readonly returned: string;
  /** The first parameter of `writerOf`. */
  readonly at: number;
}

/**
 * Writes the row with the id $1 and the version $2. The lock makes the version
 * the current one, not that of the statement's snapshot. No column has the
 * names of `#found`, so that `returning` is unambiguous.
 *
 * @param seen a condition for rows that the caller sees
 */
function writeOf(
  { name, version }: Table,
  write: string,
  seen = 'true',
  traced?: Traced,
) {
  const { found, stored, returned } = traced ? traceOf(traced) : noTrace;
  return `with "#found" as materialized (
      select id as "#id", ${version?.name ?? 'null::int'} as "#version"${found} from ${quoted(name)} where id = $1 and ${seen} for update),
    written as (${write})${stored}
    select "#version"::text, ${returned} from "#found" left join written on true`;
}

const noTrace = { found: '', stored: '', returned: 'written.*' };

function traceOf({ trace, action, returned, at }: Traced) {
  const { readers, members } = trace;
  return {
    found: `, ${readers}, ${members} as "#before"`,
    stored: trace.store(action, '"#found", written', writerAt(at)),
    returned,
  };
}
