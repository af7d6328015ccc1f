import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../src/postgres.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  newFolder,
  sessionWith,
  test,
} from './support.ts';

let folder: string;
let store: EmbeddedPostgres;
let pool: pg.Pool;
// One for all tests: none of them may leave it in a state that the next one would notice.
beforeAll(async () => {
  folder = newFolder();
  store = await openEmbeddedPostgres(folder);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  pool = new pg.Pool({ host: store.host, user: store.user, database: store.database, max: 8 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  await pool.query('drop table if exists visit');
  await pool.end();
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

/** A session whose bytes the test writes itself, and that has been greeted. */
async function session(): Promise<Socket> {
  const socket = connect(join(store.host, '.s.PGSQL.5432'));
  socket.write(message('', [0, 3, 0, 0], 'user', 'postgres', 'database', 'postgres', [0]));
  await answer(socket);
  return socket;
}

async function answer(socket: Socket): Promise<void> {
  await once(socket, 'data');
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

  test('keeps statements apart that come in many pieces, whatever their parameters', async () => {
    const long = 'x'.repeat(300_000);
    const calls = Array.from({ length: 60 }, async (_, n) => {
      if (n % 3 === 0) {
        const { rows } = await pool.query('select length($1::text) as length, $2::int as n', [long, n]);
        expect(rows).toEqual([{ length: long.length, n }]);
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
    ['before it said who it is', []],
  ];
  for (const [when, bytes] of breaks)
    test(`goes on when a connection breaks ${when}`, async () => {
      const socket = bytes.length > 0 ? await session() : connect(join(store.host, '.s.PGSQL.5432'));
      if (bytes.length > 0) {
        socket.write(Buffer.concat(bytes));
        await answer(socket);
      } else {
        socket.write(Buffer.from([0, 0]));
      }
      socket.destroy();
      const { rows } = await pool.query(`select to_regclass('unfinished') as left, $1::int as n`, [7]);
      expect(rows).toEqual([{ left: null, n: 7 }]);
    });

  test('answers a statement that comes byte by byte', async () => {
    const socket = await session();
    const greetings: Buffer[] = [];
    socket.on('data', (data) => greetings.push(data));
    for (const byte of message('Q', 'select 42 as answer')) socket.write(Buffer.of(byte));
    while (!Buffer.concat(greetings).includes('SELECT 1')) await once(socket, 'data');
    expect(Buffer.concat(greetings).includes('42')).toBe(true);
    socket.end(message('X'));
    await once(socket, 'close');
  });

  const first: Array<[what: string, bytes: number[]]> = [
    ['asks to cancel', [0, 0, 0, 8, 4, 210, 22, 46]],
    ['asks to encrypt', [0, 0, 0, 8, 4, 210, 22, 47]],
    ['begins with a message that is too short', [0, 0, 0, 8, 0, 3, 0, 0]],
  ];
  for (const [what, bytes] of first)
    test(`disconnects a client that ${what}`, async () => {
      const socket = connect(join(store.host, '.s.PGSQL.5432'));
      socket.resume().write(Buffer.from(bytes));
      await once(socket, 'close');
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    });

  const later: Array<[what: string, bytes: Buffer]> = [
    ['a message of no known type', message('z')],
    ['a message that is shorter than its length', Buffer.from([...Buffer.from('Q'), 0, 0, 0, 3])],
    ['rows for COPY, which PGlite does not survive', message('Q', 'copy visit from stdin')],
  ];
  for (const [what, bytes] of later)
    test(`disconnects a client that sends ${what}`, async () => {
      const socket = await session();
      socket.resume().write(bytes);
      await once(socket, 'close');
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    });

  test('answers what came before the good-bye, and ends a transaction that is left open', async () => {
    const socket = await session();
    let answered = '';
    socket.on('data', (data) => {
      answered += data.toString('latin1');
    });
    socket.write(Buffer.concat([begin, message('Q', "select 'fare' || 'well'"), message('X')]));
    await once(socket, 'close');
    expect(answered).toContain('farewell');
    expect((await pool.query("select to_regclass('unfinished') as left")).rows).toEqual([{ left: null }]);
  });

  const changes = [
    "set search_path = ''",
    'set default_transaction_read_only = on',
    "begin; select 1; SET /* for good */ search_path = ''; commit",
    "-- as pg_dump does it\nselect pg_catalog.set_config('search_path', '', false)",
    'create temp table visit (id int); insert into visit values (7)',
  ];
  for (const change of changes) {
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
  }

  test('leaves settings to the connection that made them until another one has its turn', async () => {
    const guest = await sessionWith(store);
    await guest.query("set search_path = ''");
    const path = () => guest.query("select current_setting('search_path') as path").then(({ rows }) => rows[0].path);
    expect(await path()).toBe('""');
    await pool.query('select 1');
    expect(await path()).toContain('public');
    await guest.end();
  });

  test('tells an error of a statement to its sender only', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => pool.query('select 10 / $1::int as share', [n % 2])),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? 'fulfilled' : 'rejected')),
    );
  });
});
