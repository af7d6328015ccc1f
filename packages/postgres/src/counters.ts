import type { MikroORM } from '@mikro-orm/postgresql';
import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Log } from './options.ts';
import type { Rows } from './server.ts';

/** A table whose ids come from a counter. */
export interface CountedTable {
  readonly table: string;
  readonly column: string;
  /** See `endOfCounter`. */
  readonly end: bigint;
}

/** Larger ids do not advance the counter: too few ids would remain. @param type of the column */
export function endOfCounter(type: string): bigint {
  return type === 'bigserial' ? 2n ** 63n - 2n ** 32n : 2n ** 31n - 2n ** 20n;
}

export function countedTables(orm: MikroORM): CountedTable[] {
  return [...orm.getMetadata().getAll().values()].flatMap(({ tableName: table, props }) => {
    const id = props.find(({ autoincrement }) => autoincrement);
    if (!id) return [];
    return [{ table, column: `${id.fieldNames[0]}`, end: endOfCounter(`${id.columnTypes[0]}`) }];
  });
}

/** SQL of the sequence behind a table's ids. */
export function counterOf({ table, column }: CountedTable): string {
  return `pg_get_serial_sequence(${literal(quoted(table))}, ${literal(column)})::regclass`;
}

/**
 * Sets each counter past the greatest id of its rows. Rows that were inserted with ids (COPY, a restored backup) do not
 * advance the counter, and every later insert would fail. No row is inserted meanwhile: an insert takes the same lock.
 */
export async function advanceCounters(rows: Rows, orm: MikroORM, log: Log | undefined): Promise<void> {
  for (const one of countedTables(orm)) {
    const { table, column, end } = one;
    const counter = counterOf(one);
    // Two statements, because Citus rejects one. The greatest id is read first: an insert draws its id before its row is
    // visible.
    const text = `select max(${quoted(column)}) filter (where ${quoted(column)} < ${end}), max(${quoted(column)}) from ${quoted(table)}`;
    const [[greatest, last] = []] = await rows({ name: `greatest_${table}`, text }, []);
    if (greatest) {
      const text = `
        with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(table)}))::text)
        select setval(${counter}, $1::bigint) from lock where coalesce(pg_sequence_last_value(${counter}), 0) < $1::bigint`;
      const [[moved] = []] = await rows({ name: `advance_counter_${table}`, isWrite: true, text }, [greatest]);
      if (moved) log?.warn({ table, greatest }, 'the id counter was behind the rows; it was advanced');
    }
    if (last && BigInt(last) >= end) {
      const message =
        'a row is at the end of the range of ids: new rows have smaller ids, and readers that have passed it miss them';
      log?.warn({ table, greatest: last }, message);
    }
  }
}
