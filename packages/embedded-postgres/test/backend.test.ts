import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../src/postgres.ts';
import { afterAll, afterEach, beforeAll, describe, expect, newFolder, sessionWith, test } from './support.ts';

let folder: string;
let store: EmbeddedPostgres;
let pool: pg.Pool;
// One for all tests: none of them may leave it in a state that the next one would notice.
beforeAll(async () => {
  folder = newFolder();
  store = await openEmbeddedPostgres(folder);
  pool = new pg.Pool({ host: store.host, user: store.user, database: store.database, max: 8 });
  pool.on('error', () => undefined);
});
afterEach(() => pool.query('drop table if exists visit'));
afterAll(async () => {
  await pool.end();
  await store.close();
  rmSync(folder, { recursive: true });
});

/** A message of PostgreSQL's protocol; the first one of a session has no type. */
function message(type: string, ...parts: Array<string | number[]>): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from(part))),
  );
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const begin = message('Q', 'begin; create table unfinished (id int)');
const parse = message('P', '', 'select 1', [0, 0]);
const flush = message('H');

const connected = () => connect(join(store.host, '.s.PGSQL.5432'));

/** A session whose bytes the test writes itself, and that has been greeted. */
async function session(): Promise<Socket> {
  const socket = connected();
  socket.write(message('', [0, 3, 0, 0], 'user', 'postgres', 'database', 'postgres', [0]));
  await once(socket, 'data');
  return socket;
}

/** What a session says until it ends. */
async function allOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

describe('the shared backend', () => {
  test('is not held by a connection that falls silent in a transaction, which is undone', async () => {
    const own = newFolder();
    const impatient = await openEmbeddedPostgres(own, { maxSilence: 50 });
    const [silent, other] = await Promise.all([sessionWith(impatient), sessionWith(impatient)]);
    await silent.query('begin; create table held (id int)');
    expect((await other.query(`select to_regclass('held') as held`)).rows).toEqual([{ held: null }]);
    await expect(silent.query('commit')).rejects.toThrow();
    await other.end();
    await impatient.close();
    rmSync(own, { recursive: true });
  });

  test('keeps statements apart that come in many pieces, and tells an error to its sender only', async () => {
    const long = 'x'.repeat(300_000);
    const calls = Array.from({ length: 60 }, async (_, n) => {
      if (n % 3 === 0) {
        const { rows } = await pool.query('select length($1::text) as length, $2::int as n', [long, n]);
        expect(rows).toEqual([{ length: long.length, n }]);
      } else if (n % 3 === 1) {
        await expect(pool.query('select 1 / $1::int', [0])).rejects.toThrow('division by zero');
      } else {
        const { rows } = await pool.query('select $1::int + 1 as next', [n]);
        expect(rows).toEqual([{ next: n + 1 }]);
      }
    });
    await Promise.all(calls);
  });

  test('keeps a transaction apart from what others do meanwhile', async () => {
    await pool.query('create table visit (id int)');
    const client = await pool.connect();
    await client.query('begin');
    await client.query('insert into visit values (1)');
    const others = Array.from({ length: 5 }, () => pool.query('select count(*)::int as visits from visit'));
    await client.query('insert into visit values (2)');
    await client.query('rollback');
    client.release();
    for (const { rows } of await Promise.all(others)) expect(rows).toEqual([{ visits: 0 }]);
  });

  const breaks: Array<[when: string, bytes: Buffer[]]> = [
    ['in a transaction', [begin]],
    ['between the messages of a query', [parse, flush]],
    ['in the middle of a message', [parse, parse.subarray(0, 7)]],
  ];
  for (const [when, bytes] of breaks)
    test(`goes on when a connection breaks ${when}, or before it said who it is`, async () => {
      const unknown = connected();
      unknown.write(Buffer.from([0, 0]));
      const socket = await session();
      socket.write(Buffer.concat(bytes));
      await once(socket, 'data');
      for (const one of [unknown, socket]) one.destroy();
      const { rows } = await pool.query(`select to_regclass('unfinished') as left, $1::int as n`, [7]);
      expect(rows).toEqual([{ left: null, n: 7 }]);
    });

  test('answers a statement that comes byte by byte, and then the good-bye, which ends a transaction', async () => {
    const socket = await session();
    const answered = allOf(socket);
    for (const byte of Buffer.concat([begin, message('Q', "select 'fare' || 'well'")])) socket.write(Buffer.of(byte));
    socket.write(message('X'));
    expect(await answered).toContain('farewell');
    expect((await pool.query("select to_regclass('unfinished') as left")).rows).toEqual([{ left: null }]);
  });

  const wrong: Array<[what: string, isGreeted: boolean, bytes: Buffer]> = [
    ['asks to cancel', false, Buffer.from([0, 0, 0, 8, 4, 210, 22, 46])],
    ['asks to encrypt', false, Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])],
    ['begins with a message that is too short', false, Buffer.from([0, 0, 0, 8, 0, 3, 0, 0])],
    ['sends a message of no known type', true, message('z')],
    ['sends a message that is shorter than its length', true, Buffer.from([...Buffer.from('Q'), 0, 0, 0, 3])],
  ];
  for (const [what, isGreeted, bytes] of wrong)
    test(`disconnects a client that ${what}`, async () => {
      const socket = isGreeted ? await session() : connected();
      socket.write(bytes);
      await allOf(socket);
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    });

  const changes = [
    "set search_path = ''",
    "begin; select 1; SET /* for good */ search_path = ''; commit",
    "-- as pg_dump does it\nselect pg_catalog.set_config('search_path', '', false)",
    'create temp table visit (id int); insert into visit values (7)',
  ];
  for (const change of changes)
    test(`keeps what a connection changes in its session from the others: ${change}`, async () => {
      await pool.query('create table visit (id int)');
      const [guest, prepared] = await Promise.all([sessionWith(store), sessionWith(store)]);
      await guest.query(change);
      await prepared.query({ name: 'add', text: 'insert into visit values ($1)', values: [1] });
      expect((await pool.query('select id from visit')).rows).toEqual([{ id: 1 }]);
      // Also of one that stays and goes on.
      await guest.query(change);
      await pool.query('insert into visit values (2)');
      await Promise.all([guest.end(), prepared.end()]);
      expect((await pool.query('select id from visit')).rows).toEqual([{ id: 1 }, { id: 2 }]);
    });

  test('leaves settings to the connection that made them until another one has its turn', async () => {
    const guest = await sessionWith(store);
    await guest.query("set search_path = ''");
    const path = () => guest.query("select current_setting('search_path') as path").then(({ rows }) => rows[0].path);
    expect(await path()).toBe('""');
    await pool.query('select 1');
    expect(await path()).toContain('public');
    await guest.end();
  });
});

/** PGlite looks for the rows of a COPY in the message itself, and terminates: its sender is disconnected before that. */
describe('COPY FROM STDIN', () => {
  /** As one message, and as a statement that is prepared. */
  const ways = (text: string): pg.QueryConfig[] => [{ text }, { text, name: text.slice(0, 60) }];

  const harmless: Array<[text: string, answer: string | undefined]> = [
    ["select 'it''s copy visit from stdin' as text", "it's copy visit from stdin"],
    [String.raw`select E'it\'s copy visit from stdin' as text`, "it's copy visit from stdin"],
    [String.raw`select '\' || 'copy visit from stdin' as text`, String.raw`\copy visit from stdin`],
    ["select $a$ $$ ' copy visit from stdin $b$ $a$ as text", " $$ ' copy visit from stdin $b$ "],
    ['select 1 as "a "" copy visit from stdin"', undefined],
    ["select 'plain' as text -- copy visit from stdin", 'plain'],
    ["select /* copy visit\nfrom stdin */ 'plain' as text", 'plain'],
  ];
  for (const [text, answer] of harmless)
    test(`is not seen in a statement that only looks like one: ${text}`, async () => {
      for (const way of ways(text)) expect((await pool.query(way)).rows[0].text).toBe(answer);
    });

  const copies = [
    'COPY "visit" (id)\n\tFROM  STDIN with (format csv)',
    '-- a comment\ncopy visit /* between */ from/**/stdin -- and another',
    "select 'a string'; copy visit from -- the end of a line\nstdin",
    "select $$ a ' string $$; copy/**/visit from stdin",
    String.raw`select E'a \' string'; copy visit from stdin; select 'end'`,
    String.raw`select '\'; copy(select 1)to stdout; copy visit from stdin; select '\'`,
    "/* one /* in another */ ' */ copy visit from stdin -- '",
    'select 1 as a$b$; copy visit from stdin; select 1 as c$b$',
  ];
  for (const text of copies)
    test(`ends the connection of its sender, and no other: ${text}`, async () => {
      await pool.query('create table visit (id int)');
      for (const way of ways(text)) {
        await expect(pool.query(way)).rejects.toThrow('Connection terminated unexpectedly');
        expect((await pool.query('select count(*)::int as visits from visit')).rows).toEqual([{ visits: 0 }]);
      }
    });
});
