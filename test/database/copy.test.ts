import { rmSync } from 'node:fs';
import pg from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../packages/embedded-postgres/src/postgres.ts';
import { newFolder } from '../support/database.ts';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { onPostgres } from '../support/process.ts';

const onEmbedded = onPostgres ? describe.skip : describe;

/** PGlite looks for the rows of a COPY in the message itself, and ends: whoever sends one is hung up on before that. */
onEmbedded('COPY FROM STDIN on the embedded store (skipped on PostgreSQL, which knows what to do)', () => {
  let folder: string;
  let store: EmbeddedPostgres;
  let pool: pg.Pool;
  beforeAll(async () => {
    folder = await newFolder();
    store = await openEmbeddedPostgres(folder, () => undefined);
    pool = new pg.Pool({ host: store.host, user: store.user, database: store.database });
    pool.on('error', () => undefined);
    await pool.query('create table pet (name text)');
  });
  afterAll(async () => {
    await pool.end();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  /** As one message, and as a statement that is prepared. */
  const ways = (text: string): pg.QueryConfig[] => [{ text }, { text, name: text.slice(0, 60) }];

  test.each([
    ["select 'copy pet from stdin' as text", 'copy pet from stdin'],
    ["select 'it''s copy pet from stdin' as text", "it's copy pet from stdin"],
    [String.raw`select E'it\'s copy pet from stdin' as text`, "it's copy pet from stdin"],
    [String.raw`select e'\\' || 'copy pet from stdin' as text`, String.raw`\copy pet from stdin`],
    [String.raw`select '\' || 'copy pet from stdin' as text`, String.raw`\copy pet from stdin`],
    ['select $$copy pet from stdin$$ as text', 'copy pet from stdin'],
    ["select $a$ $$ ' copy pet from stdin $b$ $a$ as text", " $$ ' copy pet from stdin $b$ "],
    ['select 1 as "copy pet from stdin"', undefined],
    ['select 1 as "a "" copy pet from stdin"', undefined],
    ["select 'plain' as text -- copy pet from stdin", 'plain'],
    ["select /* copy pet\nfrom stdin */ 'plain' as text", 'plain'],
    ["select 'copy pet' as text /* from stdin */", 'copy pet'],
  ])('what only looks like one is answered: %s', async (text, expected) => {
    for (const way of ways(text)) expect((await pool.query(way)).rows[0].text).toBe(expected);
  });

  test.each([
    'copy pet from stdin',
    'COPY pet (name)\n\tFROM  STDIN with (format csv)',
    'copy "pet" from stdin',
    '-- a comment\ncopy pet from stdin',
    '/* a comment */ copy pet from stdin -- and another',
    "select 'a string'; copy pet from stdin",
    "select $$ a ' string $$; copy pet from stdin",
    String.raw`select E'a \' string'; copy pet from stdin; select 'end'`,
    String.raw`select '\'; copy pet from stdin; select '\'`,
    'copy pet /* between */ from stdin',
    'copy pet from/**/stdin',
    'copy pet from -- the end of a line\nstdin',
    'copy/**/pet from stdin',
    'copy(select 1)to stdout; copy pet from stdin',
    "/* one /* in another */ ' */ copy pet from stdin -- '",
    'select 1 as a$b$; copy pet from stdin; select 1 as c$b$',
  ])('is hung up on, and nobody else: %s', async (text) => {
    for (const way of ways(text)) {
      await expect(pool.query(way)).rejects.toThrow('Connection terminated unexpectedly');
      expect((await pool.query('select count(*)::int as pets from pet')).rows).toEqual([{ pets: 0 }]);
    }
  });
});
