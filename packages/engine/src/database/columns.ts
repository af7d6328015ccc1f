import type { MikroORM } from '@mikro-orm/postgresql';
import type { RunStatement } from './postgres-server.ts';

/**
 * Compares the columns of entities ($1, JSON) with those of the schema, and
 * describes each difference. A column may have a wider type, in which the same
 * values have the same texts.
 */
const differences = {
  name: 'differing_columns',
  text: `
    with wanted as (
      select *,
        format_type(to_regtype(declared), null) as base,
        substring(declared, '[(]([0-9]+)')::int as size,
        substring(declared, ', ?([0-9]+)') as scale
      from json_to_recordset($1::json) as entity (
        "table" text,
        name text,
        declared text,
        nullable bool)),
    found as (
      select relname::text,
        attname::text,
        attnotnull,
        plain,
        type,
        substring(type, '[(]([0-9]+)')::int as size,
        coalesce(substring(type, ',([0-9]+)'), '0') as scale,
        attnotnull
          and not atthasdef
          and attidentity = ''
          and not relhastriggers as must_be_set
      from pg_namespace
        join pg_class on relnamespace = pg_namespace.oid
        join pg_attribute on attrelid = pg_class.oid,
        format_type(atttypid, atttypmod) as type,
        format_type(atttypid, null) as plain
      where nspname = current_schema()
        and attnum > 0
        and not attisdropped
        and relname in (select "table" from wanted)),
    compared as (
      select *,
        coalesce("table", relname)
          || '.' || coalesce(name, attname) as "column",
        count(attname) over (
          partition by coalesce("table", relname)) as columns,
        base = plain
            and coalesce(found.size >= wanted.size,
              base <> 'numeric' or wanted.size is null)
            and coalesce(found.scale = wanted.scale, true)
          or (base, plain) in (
            ('smallint', 'integer'),
            ('smallint', 'bigint'),
            ('integer', 'bigint'))
          or base = 'text'
            and plain = 'character varying'
            and coalesce(found.size, 1000) >= 1000 as fits
      from wanted full join found
        on relname = "table" and attname = name)
    select distinct case
      when columns = 0 then "table" || ' does not exist'
      when attname is null then "column" || ' does not exist'
      when name is null
        then "column" || ' must be set, and no entity has it'
      when fits is not true
        then "column" || ' is ' || type || ', not ' || declared
      else
        "column" || ' may not be null, but in the entity it may'
      end
    from compared
    where name is null and must_be_set
      or name is not null
        and (fits is not true or attnotnull and nullable)
    order by 1`,
};

/** Without them, lists through relations would be wrong. */
const missingTriggers = {
  name: 'missing_triggers',
  text: `
    select "table" || ' has no trigger ' || name
    from json_to_recordset($1::json) as entity ("table" text, name text)
    where not exists (
      select from pg_trigger
      where tgname = name and tgrelid = to_regclass(quote_ident("table")))
    order by 1`,
};

/** The differences of the schema from the entities. */
export async function differencesIn(rows: RunStatement, orm: MikroORM) {
  const tables = orm.schema.getTargetSchema().getTables();
  const columns = tables.flatMap((table) =>
    table.getColumns().map(({ name, type, nullable }) => ({
      table: table.name,
      name,
      declared: type.replace(/serial$/, 'int'),
      nullable,
    })),
  );
  const triggers = tables.flatMap((table) =>
    table.getTriggers().map(({ name }) => ({ table: table.name, name })),
  );
  const kept = triggers.filter(({ name }) => name.startsWith('through_'));
  const found = await rows(differences, [JSON.stringify(columns)]);
  const missing =
    kept.length > 0 ? await rows(missingTriggers, [JSON.stringify(kept)]) : [];
  return [...found, ...missing].map(([difference]) => `${difference}`);
}

/** @throws Error with a line for every difference */
export async function assertColumns(rows: RunStatement, orm: MikroORM) {
  const found = await differencesIn(rows, orm);
  if (found.length === 0) return;
  const list = found.map((difference) => `\n  ${difference}`).join('');
  throw new Error(
    `The tables are not those of the entities:${list}\nWrite a migration (\`npm run migration:create -- --name=...\`), and list it in the \`migrations\` of its module.`,
  );
}
