import { literal, quoted } from './quoting.ts';
import type { Statement } from './statement.ts';
import { frame, type Table } from './table.ts';

/** The statements behind `Bulk`. Each write is a transaction of its own, in which ids become visible in their order. */
export interface BulkStatements {
  addAfter: Statement;
  addMissing: Statement;
  addOnce: Statement;
  find: Statement;
  page: Statement;
}

// Ids beyond this do not move the counter: one at the end of the range would use it up (counters.ts, too).
const end = 2n ** 62n;

export function bulkStatementsFor({ name, columns, inserted }: Table): BulkStatements {
  const table = quoted(name);
  const names = columns.map((column) => column.name).join(', ');
  const texts = columns.map(({ text }) => text).join(', ');
  const newNames = inserted.map((column) => column.name).join(', ');
  const valueIn = ({ name, fallback }: (typeof columns)[number]) =>
    fallback ? `coalesce(newcomer.${name}, ${fallback})` : `newcomer.${name}`;
  const arrays = (of: typeof columns) => of.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ');
  // The same lock as a creation's: it is held from before the counter is read until the commit is visible. The cast is
  // for Citus, which keeps no column of type void.
  const turn = `turn as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text)`;
  const counter = `pg_get_serial_sequence(${literal(table)}, 'id')::regclass`;
  // From above the last id that was given out, or from anywhere. The counter is behind no row that is visible, and moves
  // when the rows are in: nothing would move it back.
  const withIds = (isAfter: boolean) => `
    with ${turn},
    counter as materialized (select pg_sequence_last_value(${counter}) as last from turn),
    newcomer as materialized (
      select newcomer.* from counter, unnest(${arrays(columns)}) as newcomer (${names})
      ${isAfter ? 'where counter.last is null or newcomer.id > counter.last' : ''}),
    inserted as (
      insert into ${table} (${names}) select ${columns.map(valueIn).join(', ')} from newcomer order by newcomer.id
      ${isAfter ? '' : 'on conflict (id) do nothing'} returning id),
    moved as materialized (
      select setval(${counter}, max(inserted.id)) from inserted, counter where inserted.id < ${end}
      having max(inserted.id) > coalesce(max(counter.last), 0))`;
  const statement = (kind: string, text: string, isWrite = true) => ({ name: `${kind}_${name}`, text, isWrite });
  const lengths = columns.filter(({ isText }) => isText).map(({ name }) => `coalesce(octet_length(${name}), 0)`);
  return {
    addAfter: statement(
      'bulk_after',
      `${withIds(true)} select counter.last, (select count(*) from moved) from counter`,
    ),
    addMissing: statement('bulk_missing', `${withIds(false)} select id, (select count(*) from moved) from inserted`),
    // The claim is a row in the same transaction: what was claimed before is there already.
    addOnce: statement(
      'bulk_once',
      `with ${turn},
      claim as (
        insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
        select 0, ${literal(`bulk ${name}`)}, $${inserted.length + 1}::bytea, '', '{}' from turn
        on conflict do nothing returning key_id),
      inserted as (
        insert into ${table} (${newNames})
        select ${inserted.map(valueIn).join(', ')}
        from claim, unnest(${arrays(inserted)}) with ordinality as newcomer (${newNames}, "#place")
        order by newcomer."#place")
      select key_id from claim`,
    ),
    find: statement('bulk_find', `select ${texts} from ${table} where id = any($1::bigint[])`, false),
    // As many rows as fit, and at least one. The lengths are known without reading the texts. `order by id` alone would
    // mean the text of that name.
    page: statement(
      'bulk_page',
      `select ${texts} from (
        select ${names}, sum(${[...lengths, frame].join(' + ')}) over (order by id) as "#bytes",
          row_number() over (order by id) as "#place"
        from (select ${names} from ${table} where id >= $1 order by id limit $2) as item) as page
      where "#bytes" <= $3 or "#place" = 1 order by page.id`,
      false,
    ),
  };
}
