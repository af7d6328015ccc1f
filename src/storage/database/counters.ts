import type { MikroORM } from '@mikro-orm/postgresql';
import { quoted } from '../records/quoting.ts';
import type { Rows } from '../records/statement.ts';
import type { Log } from './options.ts';

/** A table whose counter gives out ids that its rows have already. */
interface Behind {
  table: string;
  /** The greatest id of its rows. */
  greatest: string;
}

/**
 * The tables whose counters are behind their rows: whoever moves rows with COPY leaves the counters as they were, and
 * every insert fails then.
 */
export async function countersBehind(ask: Rows, orm: MikroORM): Promise<Behind[]> {
  const behind: Behind[] = [];
  for (const { tableName, props } of orm.getMetadata().getAll().values()) {
    const id = props.find(({ autoincrement }) => autoincrement);
    if (!id) continue;
    const column = quoted(`${id.fieldNames[0]}`);
    // One at the end of the range is no reason to give out no more. The greatest first: whoever inserts draws its id
    // before it is seen. Two statements, which Citus can run.
    const end = id.columnTypes[0] === 'bigserial' ? 2n ** 62n : 2n ** 30n;
    const text = `select max(${column}) from ${quoted(tableName)} where ${column} < ${end}`;
    const [[greatest] = []] = await ask({ name: `greatest_${tableName}`, text }, []);
    if (!greatest) continue;
    const [[isBehind] = []] = await ask(isBehindRows, [tableName, id.fieldNames[0], greatest]);
    if (isBehind === 't') behind.push({ table: tableName, greatest });
  }
  return behind;
}

/** Sets such counters after their rows. Nobody inserts meanwhile: `insert` (statements.ts) takes the same lock. */
export async function advanceCounters(ask: Rows, orm: MikroORM, log: Log | undefined): Promise<void> {
  for (const { table, greatest } of await countersBehind(ask, orm)) {
    await ask(advance, [table, 'id', greatest]);
    log?.warn(
      { table, greatest },
      'the counter was behind the rows, which were moved by hand perhaps: it is after them now',
    );
  }
}

const counter = 'pg_get_serial_sequence(quote_ident($1), $2)::regclass';
const comparison = `coalesce(pg_sequence_last_value(${counter}), 0) < $3::bigint`;

const isBehindRows = { name: 'is_behind', text: `select ${comparison} and ${counter} is not null` };

const advance = {
  name: 'advance_counter',
  isWrite: true,
  text: `
    with turn as materialized (select pg_advisory_xact_lock(hashtext($1)))
    select setval(${counter}, $3::bigint) from turn where ${comparison}`,
};
