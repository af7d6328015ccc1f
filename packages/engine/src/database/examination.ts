import { randomBytes } from 'node:crypto';
import type { DatabaseTable, MikroORM } from '@mikro-orm/postgresql';
import { escapeIdentifier as quoted } from 'pg';
import type { PostgresServer } from './postgres-server.ts';

const lacking = `
  select
    (select string_agg("right" || ' on ' || name, ', ')
      from unnest($1::text[]) as name,
        unnest('{update,delete}'::text[]) as "right"
      where not has_table_privilege(quote_ident(name), "right")) as rights,
    (select string_agg(name, ', ')
      from unnest($2::name[]) as name
      where not exists (
        select from pg_index
        where indexrelid = to_regclass(quote_ident(name)) and indisvalid
      )) as indexes,
    (select string_agg(key, ', ' order by key)
      from unnest($3::text[]) as key
      where not exists (
        select from pg_constraint
        where contype = 'f' and starts_with(replace(
          conrelid::regclass || ' ' || pg_get_constraintdef(oid), '"', ''), key)
      )) as keys`;

/** Random, because PostgreSQL compresses texts. */
const fill = `
  insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
  values (0, 'doctor', '', $1, '{}')`;

/**
 * Proves that writes get their locks, and that the disk takes more bytes. All
 * is rolled back.
 *
 * @returns the rights that the role lacks beyond those of a start, the indexes
 *   that are missing or invalid, and the missing keys that contain a tenant
 * @throws as `inTransaction` does
 */
export function examine(primary: PostgresServer, orm: MikroORM) {
  const tables = orm.schema.getTargetSchema().getTables();
  const names = tables.map(({ name }) => name);
  const indexes = tables.flatMap((table) => table.getIndexes());
  const named = indexes.map(({ keyName }) => keyName);
  const keys = tables.flatMap(keysWithTenant);
  return primary.inTransaction(async (send) => {
    await send({
      text: `lock table ${names.map(quoted)} in row exclusive mode`,
    });
    await send({ text: fill, values: [randomBytes(65_536)] });
    const { rows } = await send({
      text: lacking,
      values: [names, named, keys],
    });
    await send({ text: 'rollback' });
    return rows[0] as Record<'rights' | 'indexes' | 'keys', string | null>;
  });
}

function keysWithTenant(table: DatabaseTable) {
  const keys = Object.values(table.getForeignKeys());
  return keys
    .filter(({ columnNames }) => columnNames.length > 1)
    .map(
      ({ columnNames }) =>
        `${table.name} FOREIGN KEY (${columnNames.join(', ')})`,
    );
}
