import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { formats } from '../../../packages/item-files/src/formats.ts';
import { exportTo, importFile } from '../../../src/commands/transfer.ts';
import { newPetSchema, petSchema } from '../../../src/pets/pet.schemas.ts';
import { PetService } from '../../../src/pets/pet.service.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { databaseForEach } from '../../support/each.ts';
import { foldersForEach } from '../../support/embedded.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { openNode } from '../../support/migrations.ts';
import { cli, type Env, eventually, run, runCommand, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const BOOTSTRAP_API_KEY = 'a-key-for-these-tests-and-no-others';
const folders = foldersForEach();
const database = databaseForEach(createTestDatabase);
const here = (): Env => ({ ...database.env, BOOTSTRAP_API_KEY });

/** Makes the store as good as new. */
async function clear(): Promise<void> {
  const node = await openNode(database);
  await sql(node.database, 'truncate pet, idempotency_key restart identity');
  await node.database.close();
}

const names = [
  ...['', ' ', '\\', '\\N', 'NULL', '"', '""', "it's", 'a,b', 'a\nb', 'a\r\nb', 'a\rb', '\t', '=1+1', '-5', '1e5'],
  ...['a\u2028b\u2029', '\ufeff', '🐈‍⬛ é e\u0301 日本', '\u202Ereversed', '\u007f\u0001', 'x'.repeat(1000)],
];
const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
const numbers = [least, -1n, 0n, 2n ** 53n + 1n, most];
const lineOf = (id: number, name: string, categoryId: bigint, status = 'sold') =>
  `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}\n`;
/** An empty store gives out the same ids. */
const hostile = names.map((name, at) => lineOf(at + 1, name, numbers[at % numbers.length] as bigint, 'pending'));

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
async function storeOn(env: Pick<TestDatabase, 'env'>) {
  const node = await openNode(env);
  await node.database.migrate();
  const service = new PetService(node.database);
  const collection = { name: 'pets', input: newPetSchema, item: petSchema, service };
  const file = folders.file('file');
  const { signal } = new AbortController();
  const progress = () => undefined;
  return {
    database: node.database,
    async import(content: string | Buffer, { format = 'ndjson', again = false, dryRun = false }: ImportFlags = {}) {
      writeFileSync(file, content);
      const refusals: string[] = [];
      const refused = (line: number, reason: string) => void refusals.push(`${line}: ${reason}`);
      const options = { format: formats[format], maxLength: 65_536, again, dryRun, signal, progress, refused };
      const { added, same, failure } = await importFile(file, collection, options);
      return { added, same, refused: refusals, failure: (failure as Error | undefined)?.message };
    },
    async export() {
      await exportTo(file, collection, { format: formats.ndjson, force: true, signal, progress });
      return readFileSync(file, 'utf8');
    },
  };
}

interface ImportFlags {
  format?: keyof typeof formats;
  again?: boolean;
  dryRun?: boolean;
}

describe('export and import', () => {
  test('keep every name and int64 byte for byte, in NDJSON and CSV; a line is the body that REST answers', async () => {
    const content = hostile.join('');
    const first = await importing(content, here(), 'pets', '--json');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const counts = { added: hostile.length, same: 0, refused: 0 };
    expect(JSON.parse(first.stdout)).toEqual({ ...counts, ms: expect.any(Number), perSecond: expect.any(Number) });
    expect(await exported(here())).toBe(content);
    const server = await startServer(here());
    const { text } = await rest(server, '/v1/pets?limit=100');
    expect(`${text.slice(1, -1).replaceAll('},{', '}\n{')}\n`).toBe(content);

    const csv = folders.file('all.csv');
    expect(await cli(['export', '-o', csv], here())).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(csv).mode & 0o777).toBe(0o600);
    await clear();
    expect(await cli(['import', '-i', csv], here())).toMatchObject({ code: 0, stderr: '' });
    expect(await exported(here(), '--format', 'csv')).toBe(readFileSync(csv, 'utf8'));
    expect(readFileSync(csv, 'utf8')).toContain('\r\n1,"",-9223372036854775808,pending\r\n2," ",-1,pending\r\n');
  });

  test('an export never replaces a file without --force, and ends silently when its reader does', async () => {
    const file = folders.file('taken');
    writeFileSync(file, 'mine');
    writeFileSync(`${file}.partial`, 'mine, too');
    expect(await cli(['export', '-o', file], here())).toMatchObject({
      code: 1,
      stderr: `animal-store: ${file} exists; --force overwrites it.\n`,
    });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(await cli(['export', '-o', file, '--force'], here())).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).toBe('');
    expect(readFileSync(`${file}.partial`, 'utf8')).toBe('mine, too');
    const store = await storeOn(database);
    await store.import(Array.from({ length: 5000 }, (_, at) => lineOf(at + 1, 'Rex', 1n)).join(''));
    await store.database.close();
    const shell = ['sh', '-c', '"$0" "$@" | head -n 1', process.execPath, 'dist/src/cli.js', 'export'];
    const head = await runCommand(shell, { PATH: `${process.env.PATH}`, ...here() }).ended;
    expect(head).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{"id":1,.*\}\n$/), stderr: '' });
  });

  test('an export whose reader pauses holds neither a transaction nor the embedded store', async () => {
    const server = await startServer(here());
    expect(await cli(['seed', '--count', '5000'], here())).toMatchObject({ code: 0 });
    const { child, ended } = run('cli', ['export'], here());
    await once(child.stdout as Readable, 'data');
    child.stdout?.pause();
    const json = { name: 'meanwhile', categoryId: 1 };
    const created = await rest(server, '/v1/pets', { method: 'POST', json });
    expect(created).toMatchObject({ status: 201, json: { id: 5001 } });
    child.stdout?.resume();
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/^500[01] exported/) });
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
      `{"id":7,"name":"${'x'.repeat(1001)}","categoryId":5}\n`,
      `{"id":8,"name":"${'x'.repeat(700_000)}","categoryId":5}\n`,
      '[]\n\u001b[2J{"id":9,\n',
      Buffer.concat([Buffer.from('{"id":10,"name":"'), Buffer.of(0xff), Buffer.from('","categoryId":5}\n')]),
      '{"name":"without id","categoryId":5}\n',
      `${lineOf(1, 'Rex', 5n).slice(0, -1)}\r\n`,
      '{"id":20,"name":"unknown members are ignored","categoryId":6,"owner":"Ada"}',
    ];
    const content = Buffer.concat(file.map((part) => Buffer.from(part)));
    const int64 = `categoryId must be an integer between ${least} and ${most}.`;
    const surrogates = 'name must be free of U+0000 and of lone surrogates';
    const refused = [
      'line 3: categoryId is required.',
      `line 4: ${int64}`,
      `line 5: ${int64}`,
      `line 6: ${surrogates}; status must be one of available, pending, sold.`,
      `line 7: ${surrogates}.`,
      'line 8: name must be at most 1000 characters long.',
      'line 9: The line is longer than 65536 bytes.',
      'line 10: The line must be a JSON object.',
      expect.stringMatching(/^line 11: The line is not acceptable JSON: .*\.$/),
      'line 12: The line is not acceptable JSON: it is not valid UTF-8.',
    ];
    const env = { ...here(), BODY_LIMIT_BYTES: '65536' };
    const result = await importing(content, env);
    expect(result).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^4 added, 10 refused in .* s: \d+\/s\n$/),
    });
    expect(result.stderr.split('\n').slice(0, -1)).toEqual(refused);
    expect(result.stderr).not.toContain('\x1b');
    expect(await importing(content, env)).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^0 added, 4 added before, 10 refused in /),
    });

    const store = await storeOn(database);
    const all = [
      lineOf(1, 'Rex', 5n),
      lineOf(2, 'without id', 5n, 'available'),
      lineOf(3, 'Rex', 5n),
      lineOf(4, 'unknown members are ignored', 6n, 'available'),
    ];
    expect(await store.export()).toBe(all.join(''));
    expect(await store.import(lineOf(21, 'dry', 1n), { dryRun: true })).toMatchObject({ added: 1, refused: [] });
    expect(await store.export()).toBe(all.join(''));
    await store.database.close();
  });

  test('of a CSV names the wrong record, and keeps what precedes the part that cannot be read', async () => {
    const store = await storeOn(database);
    const csv = (content: string | Buffer) => store.import(content, { format: 'csv' });
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
    expect(await store.export()).toBe(two + nameless);
    const why = 'The rest of the CSV cannot be read:';
    const unclosed = await csv(`${head}Tom,sold,1\n"never closed`);
    expect(unclosed).toMatchObject({ added: 1, failure: expect.stringContaining(`${why} Quote Not Closed`) });
    const endless = await csv(`${head}"${'x'.repeat(700_000)}`);
    expect(endless).toMatchObject({ failure: expect.stringContaining(`${why} Max Record Size`) });
    await store.database.close();
  });

  test('that is killed continues when it is repeated, and one that is interrupted keeps what it has added', async () => {
    const lines = Array.from({ length: 4000 }, (_, at) => lineOf(at + 1, `pet ${at}`, 1n));
    const pipe = folders.file('pipe');
    execFileSync('mkfifo', [pipe]);
    const store = await storeOn(database);
    const command = ['sh', '-c', 'exec "$0" "$@" <"$PIPE"', process.execPath, 'dist/src/cli.js', 'import'];
    const start = () => runCommand(command, { PATH: `${process.env.PATH}`, PIPE: pipe, ...here() });
    for (const signal of ['SIGKILL', 'SIGINT'] as const) {
      const { child, ended } = start();
      const writer = await open(pipe, 'w');
      await writer.write(lines.slice(0, 2000).join(''));
      await eventually(async () => (await sql(store.database, 'select from pet where id = 1000')).length > 0);
      child.kill(signal);
      const { code, stderr } = await ended;
      const note = 'interrupted: the lines added so far stay; the same command continues\n';
      expect([code, stderr]).toEqual(signal === 'SIGKILL' ? [null, ''] : [130, note]);
      await writer.close();
    }
    const last = start();
    const writer = await open(pipe, 'w');
    await writer.writeFile(lines.join(''));
    await writer.close();
    expect(await last.ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ added, \d+ added before in/),
      stderr: '',
    });
    expect(await store.export()).toBe(lines.join(''));
    expect(await exported(here(), '--after', '3998')).toBe(lines.slice(-2).join(''));
    await store.database.close();
  });

  test('adds each line of a file once, unless it is wanted again or has changed', async () => {
    const content = lineOf(7, 'Rex', 1n) + lineOf(7, 'Rex', 1n);
    const store = await storeOn(database);
    expect(await store.import(content)).toMatchObject({ added: 2, same: 0 });
    expect(await store.import(content)).toMatchObject({ added: 0, same: 2 });
    expect(await store.import(content, { again: true })).toMatchObject({ added: 2, same: 0 });
    expect(await store.import(content.replace('Rex', 'Tom'))).toMatchObject({ added: 1, same: 1 });
    const added = ['Rex', 'Rex', 'Rex', 'Rex', 'Tom'];
    expect(await store.export()).toBe(added.map((name, at) => lineOf(at + 1, name, 1n)).join(''));
    await store.database.close();
  });

  test('names a line that only the database refuses, and adds the others', async () => {
    const store = await storeOn(database);
    await sql(store.database, `alter table pet add constraint odd check (name <> 'odd')`);
    const lines = lineOf(1, 'even', 1n) + lineOf(2, 'odd', 1n) + lineOf(3, 'even', 1n);
    const refused = [expect.stringMatching(/^2: the database refuses it: .*"odd"/)];
    expect(await store.import(lines)).toMatchObject({ added: 2, refused, failure: undefined });
    await store.database.close();
  });
});

test('seeded animals are plausible, and the same for the same seed', async () => {
  const { stdout, stderr, code } = await cli(['seed', 'pets', '--count', '300', '--json'], here());
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ added: 300, refused: 0 });
  const all = await exported(here());
  await clear();
  expect(await cli(['seed', '--count', '100'], here())).toMatchObject({ code: 0 });
  expect(all.startsWith(await exported(here()))).toBe(true);
  const pets = all
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  for (const { name } of pets) expect(name).toMatch(/^\p{L}+ the \p{L}+(?: \p{L}+)?$/u);
  expect(new Set(pets.map(({ status }) => status)).size).toBe(3);
  expect(new Set(pets.map(({ categoryId }) => categoryId)).size).toBe(6);
  expect(await cli(['seed', 'dragons'], here())).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^animal-store: There is no collection dragons; the collections are: pets/),
  });
});
