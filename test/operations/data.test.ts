import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { DataDesk, type ImportFlags } from '../../src/commands/data/desk.ts';
import { modules } from '../../src/modules.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { sql } from '../support/database-access.ts';
import { databaseForEach } from '../support/each.ts';
import { foldersForEach } from '../support/embedded.ts';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import { openNode } from '../support/migrations.ts';
import { cli, type Env, eventually, run, runCommand, type ServerProcess, startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

const BOOTSTRAP_API_KEY = 'a-key-for-these-tests-and-no-others';
const folders = foldersForEach();
const database = databaseForEach(createTestDatabase);
let second: TestDatabase;
beforeEach(async () => {
  second = await createTestDatabase();
});
afterEach(() => second.drop());
const here = (): Env => ({ ...database.env, BOOTSTRAP_API_KEY });
const elsewhere = (): Env => ({ ...second.env, BOOTSTRAP_API_KEY });

const names = [
  ...['', ' ', ' a ', '\\', '\\N', '\\.', 'NULL', '"', '""', "it's", 'a,b', 'a\nb', 'a\r\nb', 'a\rb', '\t', '\r\n'],
  ...[
    'a\u2028b\u2029',
    '\ufeff',
    '🐈‍⬛ é e\u0301 日本',
    '\u202Ereversed',
    '\u007f\u0001',
    '=1+1',
    '-5',
    '1e5',
    'x'.repeat(1000),
  ],
];
const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
const numbers = [least, -1n, 0n, 2n ** 53n + 1n, most];
const lineOf = (id: bigint | number, name: string, categoryId: bigint, status = 'sold') =>
  `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}\n`;
/** By ascending id; the ids leave gaps, and end where int64 does. */
const hostile = [
  lineOf(least, 'least', 1n),
  ...names.map((name, at) => lineOf(3 * at + 1, name, numbers[at % numbers.length] as bigint, 'pending')),
  lineOf(2n ** 53n + 1n, 'beyond a double', 5n, 'available'),
  lineOf(most, 'most', most),
];

/** Writes a file, and imports it by a command. */
function importing(content: string | Buffer, env: Env, ...flags: string[]) {
  const file = folders.file('pets.ndjson');
  writeFileSync(file, content);
  return cli(['import', '--input', file, ...flags], env);
}

/** What a command exports. */
async function exported(env: Env, ...flags: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(['export', ...flags], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^\d+ exported.*: \d+\/s\n$/) });
  return stdout;
}

/** The same commands without a process for each. */
async function deskOn(env: Pick<TestDatabase, 'env'>) {
  const node = await openNode(env);
  await node.database.migrate();
  const collections = modules.flatMap(({ collections = [] }) => collections);
  const limits = { longestItem: 65_536 };
  const desk = new DataDesk(collections, limits, (work) => work(node.database));
  const file = folders.file('file');
  const { signal } = new AbortController();
  return {
    database: node.database,
    async import(content: string | Buffer, flags: ImportFlags = {}) {
      writeFileSync(file, content);
      const refused: string[] = [];
      const tell = (line: number, reason: string) => void refused.push(`${line}: ${reason}`);
      const watch = { signal, progress: () => undefined, refused: tell };
      const { added, same, failure } = await desk.import('pets', { ...flags, input: file }, watch);
      return { added, same, refused, failure: failure?.message };
    },
    async export() {
      const watch = { signal, progress: () => undefined, refused: () => undefined };
      await desk.export('pets', { output: file, force: true }, watch);
      return readFileSync(file, 'utf8');
    },
  };
}

/** Every animal, as pages of REST. */
async function walk(server: ServerProcess): Promise<Array<{ id: number }>> {
  const pets: Array<{ id: number }> = [];
  for (let after = ''; ; after = `&after=${pets.at(-1)?.id}`) {
    const { json } = await rest(server, `/v1/pets?limit=100${after}`);
    if (json.length === 0) return pets;
    pets.push(...json);
  }
}

describe('export and import', () => {
  test('carry every name and int64 byte for byte, by NDJSON and CSV, and a line is what REST answers', async () => {
    const content = hostile.join('');
    const first = await importing(content, here(), 'pets', '--json');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(first.stdout)).toEqual({
      added: hostile.length,
      same: 0,
      refused: 0,
      isInterrupted: false,
      ms: expect.any(Number),
      perSecond: expect.any(Number),
    });
    expect(await exported(here())).toBe(content);
    const server = await startServer(here());
    const { text } = await rest(server, '/v1/pets?limit=100');
    expect(`${text.slice(1, -1).replaceAll('},{', '}\n{')}\n`).toBe(content.slice(content.indexOf('\n') + 1));
    // Creations go on after the greatest id that is not at the end of the range.
    const created = await rest(server, '/v1/pets', { method: 'POST', json: { name: 'next', categoryId: 1 } });
    expect(created.json.id).toBe(2n ** 53n + 2n);

    const csv = folders.file('all.csv');
    expect(await cli(['export', '-o', csv], here())).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(csv).mode & 0o777).toBe(0o600);
    expect(await cli(['import', '-i', csv], elsewhere())).toMatchObject({ code: 0, stderr: '' });
    expect(await exported(elsewhere(), '--format', 'csv')).toBe(readFileSync(csv, 'utf8'));
    expect(readFileSync(csv, 'utf8')).toContain('\r\n1,"",-9223372036854775808,pending\r\n4," ",-1,pending\r\n');
  });

  test('an export leaves a file that is there, and says nothing when nobody reads on', async () => {
    const file = folders.file('taken');
    writeFileSync(file, 'mine');
    expect(await cli(['export', '-o', file], here())).toMatchObject({
      code: 1,
      stderr: `animal-store: ${file} exists; --force overwrites it.\n`,
    });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    const pets = Array.from({ length: 5000 }, (_, at) => lineOf(at + 1, 'Rex', 1n));
    const desk = await deskOn(database);
    await desk.import(pets.join(''));
    await desk.database.close();
    const shell = ['sh', '-c', '"$0" "$@" | head -n 1', process.execPath, 'dist/src/cli.js', 'export'];
    const head = await runCommand(shell, { PATH: `${process.env.PATH}`, ...here() }).ended;
    expect(head).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{"id":1,.*\}\n$/), stderr: '' });
  });
});

describe('an import', () => {
  test('refuses a line that a creation would refuse, names it, and adds the others; run again, it adds none', async () => {
    const file = [
      lineOf(1, 'Rex', 5n),
      '\n',
      '{"id":2,"name":"no category"}\n',
      '{"id":3,"name":"Ada","categoryId":"5"}\n',
      '{"id":4,"name":"Ada","categoryId":9223372036854775808}\n',
      '{"id":5,"name":"\\u0000","categoryId":5,"status":"gone"}\n',
      '{"id":6,"name":"\\ud800","categoryId":5}\n',
      `{"id":7,"name":"${'x'.repeat(10_001)}","categoryId":5}\n`,
      `{"id":8,"name":"${'x'.repeat(700_000)}","categoryId":5}\n`,
      '[]\n\u001b[2J{"id":9,\n',
      Buffer.concat([Buffer.from('{"id":10,"name":"'), Buffer.of(0xff), Buffer.from('","categoryId":5}\n')]),
      '{"name":"without id","categoryId":5}\n',
      lineOf(1, 'another Rex', 5n),
      `${lineOf(1, 'Rex', 5n).slice(0, -1)}\r\n`,
      '{"id":20,"name":"unknown members are ignored","categoryId":6,"owner":"Ada"}',
    ];
    const content = Buffer.concat(file.map((part) => Buffer.from(part)));
    const int64 = `categoryId must be an integer between ${least} and ${most}.`;
    const refused = [
      [3, 'categoryId is required.'],
      [4, int64],
      [5, int64],
      [6, 'name must be free of U+0000 and of lone surrogates; status must be one of available, pending, sold.'],
      [7, 'name must be free of U+0000 and of lone surrogates.'],
      [8, 'name must be at most 1000 characters long.'],
      [9, 'The line is longer than 65536 bytes.'],
      [10, 'The line must be a JSON object.'],
      [11, expect.stringMatching(/^The line is not acceptable JSON: .*\.$/)],
      [12, 'The line is not acceptable JSON: it is not valid UTF-8.'],
      [13, 'id is required.'],
      [14, 'id 1 is another item: its name differs'],
    ];
    const rejects = folders.file('rejects');
    const env = { ...here(), BODY_LIMIT_BYTES: '65536' };
    const result = await importing(content, env, '--rejects', rejects);
    expect(result).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^2 added, 1 were there, 12 refused in .* s: \d+\/s\n$/),
    });
    const lines = readFileSync(rejects, 'utf8').split('\n').slice(0, -1);
    const told = lines.map((line): { line: number; reason: string } => JSON.parse(line));
    expect(told.map(({ line, reason }) => [line, reason])).toEqual(refused);
    const printed = told.map(({ line, reason }) => `line ${line}: ${reason.replaceAll('\x1b', '\\u001b')}\n`);
    expect(result.stderr).toBe(printed.join(''));
    expect(result.stderr).toContain('\\u001b');

    const desk = await deskOn(database);
    const all = lineOf(1, 'Rex', 5n) + lineOf(20, 'unknown members are ignored', 6n, 'available');
    expect(await desk.export()).toBe(all);
    expect(await desk.import(content)).toMatchObject({ added: 0, same: 3 });
    // An id that was left out is not filled: a reader that is at 20 would never see it.
    const reason =
      'id 19 is free, but ids up to 20 have been given out: readers who have passed it would miss it (--anywhere)';
    const late = all + lineOf(19, 'late', 1n);
    expect(await desk.import(late)).toEqual({ added: 0, same: 2, refused: [`3: ${reason}`], failure: undefined });
    expect(await desk.import(late, { anywhere: true })).toMatchObject({ added: 1, same: 2, refused: [] });
    // Only checked: nothing is added.
    expect(await desk.import(lineOf(21, 'dry', 1n), { dryRun: true })).toMatchObject({ added: 1, refused: [] });
    expect((await desk.export()).match(/(?<="id":)\d+/g)).toEqual(['1', '19', '20']);
    await desk.database.close();
  });

  test('of a CSV says which record is wrong, and ends where it cannot be read on; what was before is kept', async () => {
    const desk = await deskOn(database);
    const csv = (content: string | Buffer) => desk.import(content, { format: 'csv' });
    const head = '\ufeffname,status,categoryId\n';
    expect(await csv(`${head}"two\nlines",,1\nRex,sold,5,6\n\n,available,7\nAda,gone,007\n`)).toEqual({
      added: 2,
      same: 0,
      refused: [
        '4: The line has 4 fields instead of 3.',
        `7: categoryId must be an integer between ${least} and ${most}; status must be one of available, pending, sold.`,
      ],
      failure: undefined,
    });
    const [two, nameless] = [lineOf(1, 'two\nlines', 1n, 'available'), lineOf(2, '', 7n, 'available')];
    expect(await desk.export()).toBe(two + nameless);
    const why = 'The CSV cannot be read on:';
    const unknown = 'its header names "Status"; known are id, name, categoryId, status.';
    expect(await csv('name,Status,categoryId\nRex,sold,1\n')).toMatchObject({
      added: 0,
      failure: `${why} ${unknown}`,
    });
    const unclosed = await csv(`${head}Tom,sold,1\n"never closed`);
    expect(unclosed).toMatchObject({ added: 1, failure: expect.stringContaining(`${why} Quote Not Closed`) });
    const endless = await csv(`${head}"${'x'.repeat(700_000)}`);
    expect(endless).toMatchObject({ failure: expect.stringContaining(`${why} Max Record Size`) });
    const latin = await csv(Buffer.from(`name,status,categoryId\nZo\xeb,sold,1\n`, 'latin1'));
    expect(latin).toMatchObject({ added: 0, failure: expect.stringContaining('it is not UTF-8') });
    expect(await csv(gzipSync('name,categoryId\n'))).toMatchObject({ failure: expect.stringContaining('`gzip -dc') });
    expect(await desk.import(Buffer.from('\ufeff{}', 'utf16le'))).toMatchObject({
      refused: [],
      failure: expect.stringContaining('`iconv -f UTF-16'),
    });
    await desk.database.close();
  });

  test('that is killed in the middle goes on when it is run again, and one that is told to end keeps what it has', async () => {
    const lines = Array.from({ length: 12_000 }, (_, at) => lineOf(at + 1, `pet ${at}`, 1n));
    const pipe = folders.file('pipe');
    execFileSync('mkfifo', [pipe]);
    const desk = await deskOn(database);
    for (const signal of ['SIGKILL', 'SIGINT'] as const) {
      const { child, ended } = run('cli', ['import', '-i', pipe], here());
      const writer = await open(pipe, 'w');
      await writer.write(lines.slice(0, 6000).join(''));
      await eventually(async () => (await desk.export()).includes('"id":4000,'));
      child.kill(signal);
      const { code, stderr } = await ended;
      expect([code, stderr]).toEqual(
        signal === 'SIGKILL' ? [null, ''] : [130, 'interrupted: what was added stays; the same command goes on\n'],
      );
      await writer.close();
    }
    expect(await importing(lines.join(''), here())).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ added, \d+ were there in/),
      stderr: '',
    });
    expect(await exported(here())).toBe(lines.join(''));
    expect(await exported(here(), '--after', '11998')).toBe(lines.slice(-2).join(''));
    await desk.database.close();
  });

  test('gives new ids when it is asked to, and the same file is not added twice unless that is meant', async () => {
    const content = lineOf(7, 'Rex', 1n) + lineOf(7, 'Rex', 1n);
    const desk = await deskOn(database);
    expect(await desk.import(content, { ids: 'new' })).toMatchObject({ added: 2, same: 0 });
    expect(await desk.import(content, { ids: 'new' })).toMatchObject({ added: 0, same: 2 });
    expect(await desk.import(content, { ids: 'new', again: true })).toMatchObject({ added: 2, same: 0 });
    expect(await desk.export()).toBe([1, 2, 3, 4].map((id) => lineOf(id, 'Rex', 1n)).join(''));
    await desk.database.close();
  });

  test('tells a row that somebody has put beyond the counter from those that are new', async () => {
    const desk = await deskOn(database);
    const far = 5_000_000_000_000_000_000n;
    await sql(desk.database, `insert into pet (id, name, category_id, status) values (${far}, 'far', 1, 'sold')`);
    const content = lineOf(1, 'Rex', 1n) + lineOf(far, 'far', 1n);
    expect(await desk.import(content)).toMatchObject({ added: 1, same: 1, refused: [] });
    // What only the database refuses is refused alone.
    await sql(desk.database, `alter table pet add constraint odd check (name <> 'odd')`);
    const next = [2, 3, 4].map((id) => lineOf(id, id === 3 ? 'odd' : 'even', 1n)).join('');
    expect(await desk.import(next)).toMatchObject({
      added: 2,
      refused: [expect.stringMatching(/^2: the database refuses it: .*"odd"/)],
    });
    await desk.database.close();
  });
});

test('while animals are seeded and imported, creations go on, and who walks the list misses none', async () => {
  const server = await startServer(here());
  const loads = [cli(['seed', '--count', '8000'], here()), cli(['seed', '--count', '8000', '--seed', '2'], here())];
  let isOver = false;
  void Promise.all(loads).then(() => {
    isOver = true;
  });
  const acknowledged: number[] = [];
  const creating = (async () => {
    while (!isOver) {
      const json = { name: 'by REST', categoryId: 1 };
      acknowledged.push((await rest(server, '/v1/pets', { method: 'POST', json })).json.id);
    }
  })();
  const seen: number[] = [];
  const look = async () => {
    const { json } = await rest(server, `/v1/pets?limit=100&after=${seen.at(-1) ?? 0}`);
    seen.push(...json.map(({ id }: { id: number }) => id));
    return json.length > 0;
  };
  while (!isOver) await look();
  await creating;
  while (await look());
  for (const load of loads)
    expect(await load).toMatchObject({ code: 0, stdout: expect.stringMatching(/^8000 added in/) });
  expect(seen).toEqual((await walk(server)).map(({ id }) => id));
  expect(seen.length).toBe(16_000 + acknowledged.length);
  expect(acknowledged.length).toBeGreaterThan(0);
});

test('seeded animals are plausible, and the same for the same seed', async () => {
  const { stdout, stderr, code } = await cli(['seed', 'pets', '--count', '300', '--json'], here());
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ added: 300, refused: 0 });
  expect(await cli(['seed', '--count', '100'], elsewhere())).toMatchObject({ code: 0 });
  const all = await exported(here());
  expect(all.startsWith(await exported(elsewhere()))).toBe(true);
  const pets = all
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  for (const { name } of pets) expect(name).toMatch(/^\p{L}+ the \p{L}+(?: \p{L}+)?$/u);
  const count = (status: string) => pets.filter((pet) => pet.status === status).length;
  expect(count('available')).toBeGreaterThan(count('sold'));
  expect(count('sold')).toBeGreaterThan(count('pending'));
  expect(count('pending')).toBeGreaterThan(0);
  expect(new Set(pets.map(({ categoryId }) => categoryId)).size).toBe(6);
  expect(await cli(['seed', 'dragons'], here())).toMatchObject({
    code: 1,
    stderr: 'animal-store: There are no dragons; there are: pets.\n',
  });
});
