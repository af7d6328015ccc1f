import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '@animal-store/pglite-server';
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  test,
} from '@jest/globals';
import pg from 'pg';
import { message, startup } from './messages.ts';

const newFolder = () =>
  mkdtempDisposableSync(join(tmpdir(), 'embedded-postgres-test-'));

/** Opens a session with a store. */
async function sessionWith({
  host,
  port = 5432,
}: {
  host: string;
  port?: number;
}): Promise<pg.Client> {
  const session = new pg.Client({
    host,
    port,
    user: 'postgres',
    database: 'postgres',
  });
  session.on('error', () => undefined);
  await session.connect();
  return session;
}

const folder = newFolder();
let store: EmbeddedPostgres;
let pool: pg.Pool;
// All tests share one store, so none may leave a state that affects the next
// one.
beforeAll(async () => {
  store = await openEmbeddedPostgres(folder.path);
  pool = new pg.Pool({
    connectionString: store.url,
    max: 8,
  });
  pool.on('error', () => undefined);
});
afterEach(() => pool.query('drop table if exists visit'));
afterAll(async () => {
  await pool.end();
  await store.close();
  folder.remove();
});

const begin = message('Q', 'begin; create table unfinished (id int)');
const parse = message('P', '', 'select 1', [0, 0]);
const flush = message('H');

const connected = () => connect(join(store.host, '.s.PGSQL.5432'));

/**
 * @returns a socket after the start of a session; the test writes the bytes of
 *   its messages
 */
async function session(): Promise<Socket> {
  const socket = connected();
  socket.write(startup);
  await once(socket, 'data');
  return socket;
}

describe('the shared backend', () => {
  test('rolls back a transaction whose connection falls silent, and serves the others', async () => {
    using own = newFolder();
    const impatient = await openEmbeddedPostgres(own.path, { maxSilence: 50 });
    const [silent, other] = await Promise.all([
      sessionWith(impatient),
      sessionWith(impatient),
    ]);
    await silent.query('begin; create table held (id int)');
    expect(
      (await other.query(`select to_regclass('held') as held`)).rows,
    ).toEqual([{ held: null }]);
    await expect(silent.query('commit')).rejects.toThrow();
    await other.end();
    await impatient.close();
  });

  test('separates statements that arrive in many pieces, and sends an error to its sender only', async () => {
    const long = 'x'.repeat(300_000);
    const calls = Array.from({ length: 30 }, async (_, n) => {
      const failing = expect(
        pool.query('select 1 / $1::int', [0]),
      ).rejects.toThrow('division by zero');
      const { rows } = await pool.query(
        'select length($1::text) as length, $2::int as n',
        [long, n],
      );
      expect(rows).toEqual([{ length: long.length, n }]);
      await failing;
    });
    await Promise.all(calls);
  });

  test('isolates a transaction from concurrent statements', async () => {
    await pool.query('create table visit (id int)');
    const client = await pool.connect();
    await client.query('begin');
    await client.query('insert into visit values (1)');
    const others = Array.from({ length: 5 }, () =>
      pool.query('select count(*)::int as visits from visit'),
    );
    await client.query('insert into visit values (2)');
    await client.query('rollback');
    client.release();
    for (const { rows } of await Promise.all(others))
      expect(rows).toEqual([{ visits: 0 }]);
  });

  test.each<[when: string, bytes: Buffer[]]>([
    ['in a transaction', [begin]],
    ['between the messages of a query', [parse, flush]],
    ['in the middle of a message', [parse, parse.subarray(0, 7)]],
  ])(
    'continues when a connection breaks %s, or before its start message',
    async (_, bytes) => {
      const unknown = connected();
      unknown.write(Buffer.from([0, 0]));
      const socket = await session();
      socket.write(Buffer.concat(bytes));
      await once(socket, 'data');
      for (const one of [unknown, socket]) one.destroy();
      const { rows } = await pool.query(
        `select to_regclass('unfinished') as left, $1::int as n`,
        [7],
      );
      expect(rows).toEqual([{ left: null, n: 7 }]);
    },
  );

  test('executes a statement that arrives byte by byte; the Terminate message behind it ends the transaction', async () => {
    const socket = await session();
    const output = text(socket);
    for (const byte of Buffer.concat([
      begin,
      message('Q', "select 'fare' || 'well'"),
    ]))
      socket.write(Buffer.of(byte));
    socket.write(message('X'));
    expect(await output).toContain('farewell');
    expect(
      (await pool.query("select to_regclass('unfinished') as left")).rows,
    ).toEqual([{ left: null }]);
  });

  test.each<[what: string, isGreeted: boolean, bytes: Buffer]>([
    [
      'sends a cancel request',
      false,
      Buffer.from([0, 0, 0, 8, 4, 210, 22, 46]),
    ],
    ['sends an SSL request', false, Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])],
    [
      'begins with a message that is too short',
      false,
      Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]),
    ],
    ['sends a message of no known type', true, message('z')],
    [
      'sends a message that is shorter than its length',
      true,
      Buffer.from([...Buffer.from('Q'), 0, 0, 0, 3]),
    ],
  ])('disconnects a client that %s', async (_, isGreeted, bytes) => {
    const socket = isGreeted ? await session() : connected();
    socket.write(bytes);
    await text(socket);
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test.each([
    "set search_path = ''",
    "begin; select 1; SET /* for good */ search_path = ''; commit",
    "-- as pg_dump does it\nselect pg_catalog.set_config('search_path', '', false)",
    'create temp table visit (id int); insert into visit values (7)',
  ])(
    'does not apply session changes of one connection to the others: %s',
    async (change) => {
      await pool.query('create table visit (id int)');
      const [guest, prepared] = await Promise.all([
        sessionWith(store),
        sessionWith(store),
      ]);
      await guest.query(change);
      await prepared.query({
        name: 'add',
        text: 'insert into visit values ($1)',
        values: [1],
      });
      expect((await pool.query('select id from visit')).rows).toEqual([
        { id: 1 },
      ]);
      // Also while the connection stays open and changes its session again.
      await guest.query(change);
      await pool.query('insert into visit values (2)');
      await Promise.all([guest.end(), prepared.end()]);
      expect((await pool.query('select id from visit')).rows).toEqual([
        { id: 1 },
        { id: 2 },
      ]);
    },
  );

  test('keeps the settings of a connection until another connection has its turn', async () => {
    const guest = await sessionWith(store);
    await guest.query("set search_path = ''");
    const path = async () =>
      (await guest.query("select current_setting('search_path') as path"))
        .rows[0].path;
    expect(await path()).toBe('""');
    await pool.query('select 1');
    expect(await path()).toContain('public');
    await guest.end();
  });
});

/**
 * PGlite reads the rows of a COPY from the message itself, and terminates. So
 * its sender is disconnected before.
 */
describe('COPY FROM STDIN', () => {
  /** A simple query, and a prepared statement. */
  const ways = (text: string): pg.QueryConfig[] => [
    { text },
    { text, name: text.slice(0, 60) },
  ];

  test.each<[text: string, value: string | undefined]>([
    [
      "select 'it''s copy visit from stdin' as text",
      "it's copy visit from stdin",
    ],
    [
      String.raw`select E'it\'s copy visit from stdin' as text`,
      "it's copy visit from stdin",
    ],
    [
      String.raw`select '\' || 'copy visit from stdin' as text`,
      String.raw`\copy visit from stdin`,
    ],
    [
      "select $a$ $$ ' copy visit from stdin $b$ $a$ as text",
      " $$ ' copy visit from stdin $b$ ",
    ],
    ['select 1 as "a "" copy visit from stdin"', undefined],
    ["select 'plain' as text -- copy visit from stdin", 'plain'],
    ["select /* copy visit\nfrom stdin */ 'plain' as text", 'plain'],
  ])(
    'is not detected in strings, names and comments: %s',
    async (text, value) => {
      for (const way of ways(text))
        expect((await pool.query(way)).rows[0].text).toBe(value);
    },
  );

  test.each([
    'COPY "visit" (id)\n\tFROM  STDIN with (format csv)',
    '-- a comment\ncopy visit /* between */ from/**/stdin -- and another',
    "select 'a string'; copy visit from -- the end of a line\nstdin",
    "select $$ a ' string $$; copy/**/visit from stdin",
    String.raw`select E'a \' string'; copy visit from stdin; select 'end'`,
    String.raw`select '\'; copy(select 1)to stdout; copy visit from stdin; select '\'`,
    "/* one /* in another */ ' */ copy visit from stdin -- '",
    'select 1 as a$b$; copy visit from stdin; select 1 as c$b$',
  ])('ends the connection of its sender, and no other: %s', async (text) => {
    await pool.query('create table visit (id int)');
    for (const way of ways(text)) {
      await expect(pool.query(way)).rejects.toThrow(
        'Connection terminated unexpectedly',
      );
      expect(
        (await pool.query('select count(*)::int as visits from visit')).rows,
      ).toEqual([{ visits: 0 }]);
    }
  });
});

test('a retired store is refused to the process that waits for it, and to the next one', async () => {
  using place = newFolder();
  const { path: folder } = place;
  const own = await openEmbeddedPostgres(folder);
  const { promise: lost, resolve: onLost } = Promise.withResolvers<Error>();
  const waiting = await openEmbeddedPostgres(folder, { onLost });
  own.retire('It is elsewhere.');
  await own.close();
  const retired = `It is elsewhere. To use this store again nevertheless, remove ${folder}/retired.`;
  expect((await lost).message).toBe(retired);
  await waiting.close();
  await expect(openEmbeddedPostgres(folder)).rejects.toThrow(retired);
  const opened = await openEmbeddedPostgres(folder, { evenRetired: true });
  await opened.close();
});

test.each(['/proc/store', '/dev/null/store'])(
  'a folder that cannot be made is refused: %s',
  async (folder) => {
    await expect(openEmbeddedPostgres(folder)).rejects.toThrow(
      `The data folder ${folder} cannot be written`,
    );
  },
);
