import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { SharedBackend } from '../../packages/embedded-postgres/src/backend.ts';
import { openEngine } from '../../packages/embedded-postgres/src/engine.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../packages/embedded-postgres/src/postgres.ts';
import { preparedStore } from '../../src/prepared-store.ts';
import { newFolder } from '../support/database.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { onPostgres } from '../support/process.ts';

let folder: string;
let store: EmbeddedPostgres;
let pool: pg.Pool;
// One for all tests: none of them may leave it in a state that the next one would notice.
beforeAll(async () => {
  if (onPostgres) return;
  folder = await newFolder();
  store = await openEmbeddedPostgres(folder, () => undefined, preparedStore());
});
afterAll(async () => {
  if (onPostgres) return;
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

const clientOf = (host: string) => ({ host, port: 5432, user: 'postgres', database: 'postgres' });

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

const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded('the backend of the embedded store (skipped on PostgreSQL, which has one for each connection)', () => {
  test('is not held by a connection that falls silent in a transaction, which is undone', async () => {
    const own = await newFolder();
    const engine = await openEngine(join(own, 'postgres'), preparedStore());
    const backend = new SharedBackend(engine, 50);
    await backend.listen(join(own, '.s.PGSQL.5432'));
    const [silent, other] = [1, 2].map(() => new pg.Client(clientOf(own))) as [pg.Client, pg.Client];
    for (const client of [silent, other]) client.on('error', () => undefined);
    await silent.connect();
    await silent.query('begin; create table held (id int)');
    await other.connect();
    expect((await other.query(`select to_regclass('held') as held`)).rows).toEqual([{ held: null }]);
    await expect(silent.query('commit')).rejects.toThrow();
    await other.end();
    backend.close();
    await engine.close();
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

  test.each([
    ['in a transaction', [begin]],
    ['between the messages of a query', [parse, flush]],
    ['in the middle of a message', [parse, parse.subarray(0, 7)]],
    ['before it said who it is', []],
  ])('goes on when a connection breaks %s', async (_, bytes) => {
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

  test.each<[string, number[]]>([
    ['asks to cancel', [0, 0, 0, 8, 4, 210, 22, 46]],
    ['asks to encrypt', [0, 0, 0, 8, 4, 210, 22, 47]],
    ['begins with a message that is too short', [0, 0, 0, 8, 0, 3, 0, 0]],
  ])('hangs up on whoever %s', async (_, bytes) => {
    const socket = connect(join(store.host, '.s.PGSQL.5432'));
    socket.resume().write(Buffer.from(bytes));
    await once(socket, 'close');
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test.each([
    ['a message of no known type', message('z')],
    ['a message that is shorter than its length', Buffer.from([...Buffer.from('Q'), 0, 0, 0, 3])],
    ['rows for COPY, which PGlite does not survive', message('Q', 'copy visit from stdin')],
  ])('hangs up on whoever sends %s', async (_, bytes) => {
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

  test('forgets what a connection had set when it is gone', async () => {
    const guest = new pg.Client({ host: store.host, user: store.user, database: store.database });
    await guest.connect();
    await guest.query("set search_path = ''; set default_transaction_read_only = on; create temp table toy (id int)");
    await guest.end();
    const { rows } = await pool.query("select current_setting('search_path') as path, to_regclass('toy') as toy");
    expect(rows).toEqual([{ path: expect.stringContaining('public'), toy: null }]);
    await pool.query('create table visit (id int)');
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
