// runs: embedded, postgres

import type pg from 'pg';
import { createEmptyDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/fixtures.ts';
import { afterEach, beforeEach, expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  onPlainPostgres,
  startAndFail,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import {
  createRole,
  openSession,
  type TestRole,
} from '../../support/session.ts';
import { startStore } from '../../support/store.ts';

const given = databaseForEach(createEmptyDatabase);
let session: pg.Client;
let role: TestRole;
beforeEach(async () => {
  if (!onPlainPostgres) return;
  session = await openSession(given);
  role = await createRole(given);
});
afterEach(async () => {
  await session?.end();
});

/** The name of the database and of the role stand in for $database and $role. */
async function prepare(statements: string[]): Promise<void> {
  const database = new URL(role.url).pathname.slice(1);
  for (const text of statements) {
    const named = text.replaceAll('$role', role.name);
    await session.query(named.replaceAll('$database', database));
  }
}

function envOf(search: string): Env {
  const url = new URL(role.url);
  url.search = search;
  return { DATABASE_URL: url.href };
}

/** Starts the service, and creates an animal. @returns the names of all */
async function served(env: Env): Promise<string[]> {
  const database = { env: given.env, drop: async () => undefined };
  const store = await startStore(env, { database });
  const json = { name: 'Rex', categoryId: 5 };
  await rest(store, '/v1/pets', { method: 'POST', json });
  const { json: pets } = await rest(store, '/v1/pets');
  await store.close();
  return pets.map(({ name }: { name: string }) => name);
}

const foreign = [
  'create table public.pet (id int, owner text)',
  'create table public.api_key (id int)',
  'create table public.mikro_orm_migrations (id serial, name text, executed_at timestamptz)',
  `insert into public.mikro_orm_migrations (name) values ('2020_01_01_000000_other')`,
  'grant all on all tables in schema public to $role',
];
const own = 'create schema shop authorization $role';

(onPlainPostgres ? test : test.skip).each<[string, string, string[]]>([
  ['public', '', []],
  ['public', '?options=-c%20search_path%3Dpublic', [own]],
  ['shop', '?options=-c%20search_path%3Dshop', [own]],
  ['shop', '?options=-csearch_path%3Dshop,public&application_name=x', [own]],
  ['shop', '', [own, 'alter role $role set search_path = shop, public']],
  ['shop', '', [own, 'alter database $database set search_path = shop']],
  [
    'shop',
    '?options=-c%20search_path%3Dshop,public',
    [own, 'alter role $role set search_path = public'],
  ],
  ['$role', '', ['create schema authorization $role']],
  ['shop', '?options=-c%20search_path%3Dmissing,shop', [own]],
  [
    'A "b" c',
    '',
    [
      'create schema "A ""b"" c" authorization $role',
      'alter role $role set search_path = "A ""b"" c", public',
    ],
  ],
  ['shop', '?options=-c%20search_path%3Dshop,public', [own, ...foreign]],
  [
    'shop',
    '?options=-c%20search_path%3Dshop,public',
    [own, ...foreign, 'revoke all on public.mikro_orm_migrations from $role'],
  ],
])(
  'the store is in the schema %s of the address %s after %j, also at the second start (PostgreSQL only)',
  async (schema, search, statements) => {
    await prepare(statements);
    const env = envOf(search);
    if (statements.includes(foreign[0] as string)) {
      // No table of another application is read or written.
      expect(await cli(['keys', 'list', '--json'], env)).toMatchObject({
        code: 0,
        stdout: '[]\n',
      });
    }
    expect(await served(env)).toEqual(['Rex']);
    expect(await served(env)).toEqual(['Rex', 'Rex']);
    expect(await cli(['migrate'], env)).toMatchObject({
      code: 0,
      stdout: 'the database is up to date\n',
    });
    expect(await cli(['doctor'], env)).toMatchObject({ code: 0 });
    const text = `select table_schema from information_schema.tables where table_name = 'idempotency_key'`;
    expect((await session.query(text)).rows).toEqual([
      { table_schema: schema.replace('$role', role.name) },
    ]);
  },
);

(onPlainPostgres ? test : test.skip).each<[string, RegExp, string[], string[]]>(
  [
    [
      'a store in a later schema',
      /The store is in the schema public, but \S+ is before it in the search_path/,
      [],
      ['create schema authorization $role'],
    ],
    [
      'a search_path without a schema',
      /The search_path has no schema that exists/,
      [],
      ['alter role $role set search_path = missing'],
    ],
    [
      'a store whose migrations the role may not read',
      /permission denied for table mikro_orm_migrations/,
      [],
      ['revoke all on public.mikro_orm_migrations from $role'],
    ],
    [
      'a store whose migrations were applied through another search_path',
      /The store is in the schema shop, but public is before it/,
      [own, 'alter role $role set search_path = shop'],
      ['alter role $role set search_path = public, shop'],
    ],
  ],
)(
  '%s is refused by the start, `migrate`, `keys` and `doctor`, and nothing is created (PostgreSQL only)',
  async (_what, message, before, after) => {
    await prepare(before);
    const env = envOf('');
    expect(await cli(['migrate'], env)).toMatchObject({ code: 0 });
    await prepare(after);
    const count = 'select count(*) from information_schema.tables';
    const { rows } = await session.query(count);
    const refused = { code: 1, stderr: expect.stringMatching(message) };
    for (const end of [
      await startAndFail(env),
      await startAndFail({ ...env, MIGRATE_ON_START: 'false' }),
      await cli(['migrate'], env),
      await cli(['keys', 'list'], env),
    ]) {
      expect(end).toMatchObject(refused);
    }
    expect(await cli(['doctor'], env)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(message),
    });
    expect((await session.query(count)).rows).toEqual(rows);
  },
);
