import { createEmptyDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/each.ts';
import { afterEach, describe, expect, test } from '../../support/jest.ts';
import { migrationOf, type Node, openNode } from '../../support/migrations.ts';
import { eventually, onPostgres, ownsSessions, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { openSession } from '../../support/session.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createEmptyDatabase);
const addWeight = migrationOf('2027_01_01_000000_add_weight', ['alter table pet add column weight int']);
const addIndex = migrationOf(
  '2027_01_01_000001_add_index',
  ['drop index concurrently if exists pet_name_index', 'create index concurrently pet_name_index on pet (name)'],
  false,
);
/** Many short attempts. */
const patience = { lockTimeout: 200, attempts: 1000, pause: 100 };

const nodes: Node[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.database.close();
});
async function node(...args: Parameters<typeof openNode> extends [unknown, ...infer Rest] ? Rest : never) {
  const one = await openNode(database, ...args);
  nodes.push(one);
  return one;
}
const recorded = async ({ database }: Node) => (await sql(database, 'select name from mikro_orm_migrations')).flat();

test('a migration that fails leaves nothing; those before it stay applied', async () => {
  const broken = migrationOf('2027_01_01_000002_broken', ['create table toy (id int)', 'select 1 / 0']);
  const one = await node([addWeight, broken]);
  await expect(one.database.migrate()).rejects.toThrow('division by zero');
  expect(one.lines.map(([message, { migration }]) => [message, migration]).at(-1)).toEqual([
    'migration applied',
    addWeight.name,
  ]);
  expect(await recorded(one)).toContain(addWeight.name);
  expect(await recorded(one)).not.toContain(broken.name);
  expect(await sql(one.database, `select to_regclass('toy')`)).toEqual([[null]]);
});

test('one that opts out of its transaction and others are applied together, in their order', async () => {
  const addColour = migrationOf('2027_01_01_000002_add_colour', ['alter table pet add column colour text']);
  const one = await node([addWeight, addIndex, addColour]);
  const names = [addWeight.name, addIndex.name, addColour.name];
  expect((await one.database.migrate()).slice(-3)).toEqual(names);
  expect((await recorded(one)).slice(-3)).toEqual(names);
  expect(await sql(one.database, `select to_regclass('pet_name_index')::text`)).toEqual([['pet_name_index']]);
});

test('two nodes at once apply each migration once', async () => {
  const both = [await node([addWeight]), await node([addWeight])];
  const applied = await Promise.all(both.map(({ database }) => database.migrate()));
  expect(applied.flat().sort()).toEqual((await recorded(both[0] as Node)).sort());
});

const onServer = onPostgres ? describe : describe.skip;

onServer('while the service runs (PostgreSQL only: the embedded store has one session at a time)', () => {
  test('a migration behind a reader lets lists and creations pass, and is applied when the reader ends', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    const reader = await openSession(database);
    await reader.query('begin; select 1 from pet');
    const { database: next, lines } = await node([addWeight]);
    const migrating = next.migrate(patience);
    let created = 0;
    // Several times over: each is answered before the next is sent.
    while (lines.length < 3) {
      const answer = await rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } });
      expect(answer.status).toBe(201);
      created += 1;
      expect((await rest(server, '/v1/pets?limit=1')).status).toBe(200);
    }
    await reader.query('commit');
    await reader.end();
    expect(await migrating).toEqual([addWeight.name]);
    const waits = lines.slice(0, -1);
    expect(waits).toEqual(
      waits.map((_, index) => ['a migration waits for a lock', { migration: addWeight.name, attempt: index + 1 }]),
    );
    expect(lines.at(-1)).toEqual(['migration applied', { migration: addWeight.name, ms: expect.any(Number) }]);
    expect(await sql(next, 'select count(*) from pet where weight is null')).toEqual([[`${created}`]]);
  });

  test('a migration that never gets its lock says so, and leaves nothing', async () => {
    const one = await node([addWeight]);
    await (await node()).database.migrate();
    const reader = await openSession(database);
    await reader.query('begin; select 1 from pet');
    await expect(one.database.migrate({ lockTimeout: 10, attempts: 3, pause: 1 })).rejects.toThrow(
      `The migration ${addWeight.name} did not get its locks in 3 attempts; nothing of it was applied.`,
    );
    expect(one.lines.map(([, { attempt }]) => attempt)).toEqual([1, 2]);
    expect(await recorded(one)).not.toContain(addWeight.name);
    await reader.end();
    expect(await one.database.migrate()).toEqual([addWeight.name]);
  });

  test('an index is built while a writer goes on, another node waits, and locks have a limit', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
    const writer = await openSession(database);
    // What a role or a database sets cannot be lifted for a whole session of a pooler's.
    if (ownsSessions) {
      await writer.query(
        `do $$ begin execute format('alter database %I set lock_timeout = 1', current_database()); end $$`,
      );
    }
    await writer.query(`begin; insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`);
    const [one, other] = [await node([addIndex]), await node([addIndex])];
    const migrating = one.database.migrate();
    const builds = `select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'create index concurrently%'`;
    // Not the writer's: a transaction sees the activity as it was at its first look.
    await eventually(async () => (await sql(one.database, builds)).length === 1);
    const waiting = other.database.migrate();
    await eventually(async () => other.lines.length > 0);
    const json = { name: 'Rex', categoryId: 5 };
    expect((await rest(server, '/v1/pets', { method: 'POST', json })).status).toBe(201);
    await writer.query('commit');
    expect(await migrating).toEqual([addIndex.name]);
    expect(await waiting).toEqual([]);
    const valid = `select indisvalid from pg_index where indexrelid = 'pet_name_index'::regclass`;
    expect((await writer.query(valid)).rows).toEqual([{ indisvalid: true }]);
    await writer.end();
  });

  test('DATABASE_DIRECT_URL is where migrations go; when DATABASE_URL leads elsewhere, that is noticed', async () => {
    const { DATABASE_URL } = database.env as { DATABASE_URL: string };
    const elsewhere = new URL(DATABASE_URL);
    elsewhere.pathname = '/postgres';
    const past = await node([], { DATABASE_URL: elsewhere.href, DATABASE_DIRECT_URL: DATABASE_URL });
    await expect(past.database.migrate()).rejects.toThrow('is not the database that DATABASE_URL leads to');
    const both = await node([], { DATABASE_URL, DATABASE_DIRECT_URL: DATABASE_URL });
    expect(await both.database.migrate()).toEqual([]);
    const nowhere = await node([], { DATABASE_URL, DATABASE_DIRECT_URL: 'postgres://nobody@127.0.0.1:1/none' });
    await expect(nowhere.database.migrate()).rejects.toThrow('(DATABASE_DIRECT_URL) cannot be reached');
  });
});
