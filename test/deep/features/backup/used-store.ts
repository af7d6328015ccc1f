import { cpSync } from 'node:fs';
import { openEmbeddedPostgres } from '@animal-store/pglite-server';
import type pg from 'pg';
import { newFolder } from '../../../support/folder.ts';
import { cli, startServer } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { sessionWith } from '../../../support/session.ts';

export interface UsedStore {
  /** A key that the store has issued. */
  key: string;
  /** The result of `contentsOf`. */
  contents: Record<string, string[]>;
}

let used: Promise<UsedStore & { folder: string }> | undefined;

/**
 * Copies a closed store with contents into a folder. The store is made once per
 * process.
 */
export async function usedStoreIn(place: string): Promise<UsedStore> {
  used ??= makeUsedStore();
  const { folder, ...about } = await used;
  cpSync(folder, place, { recursive: true });
  return about;
}

async function makeUsedStore(): Promise<UsedStore & { folder: string }> {
  const folder = await newFolder();
  const env = { DATA_DIR: folder };
  const { key } = JSON.parse(
    (await cli(['keys', 'issue', '--name', 'shop', '--json'], env)).stdout,
  );
  const server = await startServer(env);
  const session = await sessionWith(folder);
  await addOddities(session);
  await rest({ ...server, key }, '/v1/pets', onceMore);
  await session.end();
  // The service writes the last use of each key when it ends.
  await server.stop();
  const store = await openEmbeddedPostgres(folder);
  const after = await sessionWith(folder);
  const contents = await contentsOf(after);
  await after.end();
  await store.close();
  return { key, contents, folder };
}

/**
 * The last request to the used store, which created animal 29. A repetition
 * gets the same response.
 */
export const onceMore = {
  method: 'POST',
  json: { name: 'once', categoryId: 1 },
  headers: { 'idempotency-key': '"once"' },
};

/**
 * Inserts the values that are hard to copy: characters that COPY and SQL
 * escape, extremes, nulls, long texts.
 */
async function addOddities(session: pg.Client): Promise<void> {
  const names = [
    ...[
      '',
      ' ',
      '\\.',
      '\\N',
      '\\',
      '\t\b\f\v',
      'a\nb',
      'a\r\nb\r',
      'a\u2028b\u2029c',
      'it\'s "quoted", {and} more',
    ],
    ...[
      'NULL',
      'é ü 日本 🐈',
      'e\u0301',
      '\u202Ereversed',
      '\u007f\u0001',
      '-- complete {}',
      'commit;',
    ],
    'x'.repeat(1_000_000),
    // As long as the names that are read in small pieces, and slightly shorter.
    ...Array.from({ length: 9 }, (_, at) => 'é'.repeat(8180 + at)),
  ];
  for (const name of names)
    await session.query(insertPet, [name, '-9223372036854775808', 'sold']);
  await session.query(insertPet, [
    'greatest',
    '9223372036854775807',
    'pending',
  ]);
  await session.query(
    `insert into pet (id, name, category_id, status) values (-9223372036854775808, 'least id', 0, 'available')`,
  );
  await session.query(
    `insert into api_key (name, scope, hint, hash, previous_hash, previous_expires_at, created_at, expires_at)
     values ('old', 'read', 'ask_0000', 'no hash', 'another', '0001-01-01 00:00:00+00 BC', '1969-12-31 23:59:59.999999+00', '9999-12-31 23:59:59.999999+00')`,
  );
  await session.query(
    `insert into deprecated_call values (1, 'getPet', '2030-12-05', 9223372036854775807, '2026-11-22 01:02:03.000001+05:45')`,
  );
  await session.query(
    `insert into idempotency_key values (0, 'createPet', '\\x00095c0a0dff', '', array['1', null, '', 'NULL', '{,}"\\'], default)`,
  );
}

const insertPet =
  'insert into pet (name, category_id, status) values ($1, $2, $3)';

/**
 * Every row of every table and every definition, as PostgreSQL formats them.
 */
export async function contentsOf(
  session: pg.Client,
): Promise<Record<string, string[]>> {
  await session.query(`set timezone = 'UTC'`);
  const rows = async (text: string) =>
    (await session.query({ text, rowMode: 'array' })).rows.map(
      ([value]) => value,
    );
  const contents: Record<string, string[]> = {};
  const tables = await rows(
    `select relname from pg_class where relkind in ('r', 'S') and relnamespace = 'public'::regnamespace`,
  );
  for (const table of tables.toSorted()) {
    // A sequence logs values in advance (log_cnt), and migrations are applied
    // at another time.
    const value =
      table === 'mikro_orm_migrations'
        ? 'one.name'
        : table.endsWith('_seq')
          ? `(one.last_value, one.is_called)::text`
          : 'one::text';
    contents[table] = await rows(
      `select text from (select ${value} as text from "${table}" as one) as all_rows order by text collate "C"`,
    );
  }
  contents.definitions = await rows(`
    select definition from (
      select format('%s %s', conname, pg_get_constraintdef(oid)) as definition from pg_constraint
        where connamespace = 'public'::regnamespace and contype <> 'n'
      union all select indexdef from pg_indexes where schemaname = 'public'
      union all select concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable, column_default,
        character_maximum_length, datetime_precision) from information_schema.columns where table_schema = 'public'
      union all select concat_ws(' ', sequencename, data_type, start_value, min_value, max_value, increment_by, cycle,
        pg_get_serial_sequence(replace(sequencename, '_id_seq', ''), 'id')) from pg_sequences where schemaname = 'public'
    ) as everything order by definition collate "C"`);
  return contents;
}
