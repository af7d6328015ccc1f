import type { ClientBase } from 'pg';
import { quoted } from '../../storage/records/quoting.ts';

export interface StoredColumn {
  name: string;
  /** With its length or precision, as PostgreSQL writes it. */
  type: string;
  isRequired: boolean;
  /** SQL of its default. */
  fallback: string | null;
  /** True when values may be of any length. */
  isLong: boolean;
  /** True when their order depends on a collation. */
  isCollated: boolean;
}

/** A table of a database as it is, whatever release made it. */
export interface StoredTable {
  name: string;
  columns: StoredColumn[];
  /** Names of the columns of the primary key; none when it has none. */
  key: string[];
  /** `fillfactor=90` and the like. */
  settings: string[] | null;
  constraints: Array<{ name: string; sql: string; isForeign: boolean }>;
  /** SQL of the indexes that no constraint makes. */
  indexes: string[];
}

/** A counter. Numbers are decimal strings. */
export interface StoredSequence {
  name: string;
  type: string;
  start: string;
  step: string;
  min: string;
  max: string;
  cache: string;
  isCyclic: boolean;
  /** The column that it belongs to, and goes with. */
  owner: { table: string; column: string } | null;
  value: string;
  /** False when the next number is `value` itself. */
  isCalled: boolean;
}

/** What the current schema of a database holds. */
export interface Catalogue {
  tables: StoredTable[];
  sequences: StoredSequence[];
}

/** @throws Error when there is anything else, which would be left out without a word */
export async function readCatalogue(session: ClientBase): Promise<Catalogue> {
  const { rows: others } = await session.query<{ what: string }>(unknownObjects);
  if (others.length > 0) {
    const list = others.map(({ what }) => what).join(', ');
    throw new Error(`The database holds what is no table of ours and would be lost: ${list}. Drop or move it first.`);
  }
  const { rows: tables } = await session.query<StoredTable>(allTables);
  const { rows } = await session.query<Counterless>(allSequences);
  const sequences: StoredSequence[] = [];
  for (const sequence of rows) sequences.push({ ...sequence, ...(await counterOf(session, sequence.name)) });
  return { tables, sequences };
}

type Value = Pick<StoredSequence, 'value' | 'isCalled'>;
type Counterless = Omit<StoredSequence, keyof Value>;

async function counterOf(session: ClientBase, sequence: string): Promise<Value> {
  const text = `select last_value::text as value, is_called as "isCalled" from ${quoted(sequence)}`;
  const { rows } = await session.query<Value>(text);
  return rows[0] as Value;
}

const here = 'relnamespace = current_schema()::regnamespace';
const isOfExtension = (catalogue: string, oid: string) =>
  `exists (select from pg_depend where classid = '${catalogue}'::regclass and objid = ${oid} and deptype = 'e')`;

const allTables = `
  select t.relname as name, t.reloptions as settings,
    (select coalesce(json_agg(json_build_object(
        'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'isRequired', a.attnotnull,
        'fallback', pg_get_expr(d.adbin, d.adrelid), 'isLong', a.attlen < 0, 'isCollated', a.attcollation <> 0)
        order by a.attnum), '[]')
      from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped) as columns,
    (select coalesce(json_agg(a.attname order by k.place), '[]')
      from pg_index i cross join unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
      join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum
      where i.indrelid = t.oid and i.indisprimary) as key,
    -- That a column is required is a constraint of its own since PostgreSQL 18; the column says it already.
    (select coalesce(json_agg(json_build_object(
        'name', c.conname, 'sql', pg_get_constraintdef(c.oid), 'isForeign', c.contype = 'f') order by c.contype desc, c.conname), '[]')
      from pg_constraint c where c.conrelid = t.oid and c.contype <> 'n') as constraints,
    -- Without the schema, so that they can be made in another one.
    (select coalesce(json_agg(regexp_replace(pg_get_indexdef(i.indexrelid), ' ON [^ .]+[.]', ' ON ') order by i.indexrelid), '[]')
      from pg_index i where i.indrelid = t.oid
        and not exists (select from pg_constraint c where c.conindid = i.indexrelid and c.conrelid = t.oid)) as indexes
  from pg_class t
  where t.relkind = 'r' and t.${here} and not ${isOfExtension('pg_class', 't.oid')}
  order by t.relname collate "C"`;

const allSequences = `
  select c.relname as name, format_type(s.seqtypid, null) as type, s.seqstart::text as start, s.seqincrement::text as step,
    s.seqmin::text as min, s.seqmax::text as max, s.seqcache::text as cache, s.seqcycle as "isCyclic",
    (select json_build_object('table', t.relname, 'column', a.attname)
      from pg_depend d join pg_class t on t.oid = d.refobjid
      join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'a') as owner
  from pg_sequence s join pg_class c on c.oid = s.seqrelid
  where c.${here} and not ${isOfExtension('pg_class', 'c.oid')}
  order by c.relname collate "C"`;

const unknownObjects = `
  select format('%s %s', case when relkind in ('r', 'p') then 'table' when relkind in ('v', 'm') then 'view' else 'relation' end, relname) as what
  from pg_class c
  where ${here} and not ${isOfExtension('pg_class', 'c.oid')} and (relkind not in ('r', 'i', 'S') or relpersistence <> 'p'
    or relispartition or relrowsecurity or exists (select from pg_inherits where inhrelid = c.oid))
  union all select format('column %s.%s (generated)', attrelid::regclass, attname) from pg_attribute a join pg_class c on c.oid = attrelid
    where ${here} and attnum > 0 and not attisdropped and (attidentity <> '' or attgenerated <> '')
  union all select format('trigger %s', tgname) from pg_trigger join pg_class c on c.oid = tgrelid
    where ${here} and not tgisinternal
  union all select format('function %s', proname) from pg_proc p
    where pronamespace = current_schema()::regnamespace and not ${isOfExtension('pg_proc', 'p.oid')}
  union all select format('type %s', typname) from pg_type y
    where typnamespace = current_schema()::regnamespace and typtype in ('d', 'e', 'r') and not ${isOfExtension('pg_type', 'y.oid')}`;
