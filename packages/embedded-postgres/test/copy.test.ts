import { rmSync } from 'node:fs';
import pg from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../src/postgres.ts';
import { afterAll, beforeAll, describe, expect, newFolder, test } from './support.ts';

/** PGlite looks for the rows of a COPY in the message itself, and terminates: its sender is disconnected before that. */
describe('COPY FROM STDIN', () => {
  let folder: string;
  let store: EmbeddedPostgres;
  let pool: pg.Pool;
  beforeAll(async () => {
    folder = newFolder();
    store = await openEmbeddedPostgres(folder);
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

  const harmless: Array<[text: string, answer: string | undefined]> = [
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
  ];
  for (const [text, answer] of harmless) {
    test(`is not seen in a statement that only looks like one: ${text}`, async () => {
      for (const way of ways(text)) expect((await pool.query(way)).rows[0].text).toBe(answer);
    });
  }

  const copies = [
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
  ];
  for (const text of copies) {
    test(`ends the connection of its sender, and no other: ${text}`, async () => {
      for (const way of ways(text)) {
        await expect(pool.query(way)).rejects.toThrow('Connection terminated unexpectedly');
        expect((await pool.query('select count(*)::int as pets from pet')).rows).toEqual([{ pets: 0 }]);
      }
    });
  }
});
