import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { sql } from '../../../support/database-access.ts';
import { databaseForEach, foldersForEach } from '../../../support/fixtures.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import { openNode } from '../../../support/migrations.ts';
import {
  bootstrapKey,
  cli,
  eventually,
  run,
  runCommand,
  startServer,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';

const folders = foldersForEach();
const database = databaseForEach();
const env = () => ({
  ...database.env,
  BOOTSTRAP_API_KEY: bootstrapKey,
  BODY_LIMIT_BYTES: '65536',
});

async function change(...statements: string[]): Promise<void> {
  const node = await openNode(database);
  for (const statement of statements) await sql(node.database, statement);
  await node.database.close();
}
const clear = () =>
  change('truncate pet, idempotency_key restart identity cascade');

const names = [
  ...[
    '',
    ' ',
    '\\',
    '\\N',
    'NULL',
    '"',
    '""',
    "it's",
    'a,b',
    'a\nb',
    'a\r\nb',
    'a\rb',
    '\t',
    '=1+1',
    '-5',
    '1e5',
  ],
  ...[
    'a\u2028b\u2029',
    '\ufeff',
    '🐈‍⬛ é e\u0301 日本',
    '\u202Ereversed',
    '\u007f\u0001',
    'x'.repeat(1000),
  ],
];
const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
const numbers = [least, -1n, 0n, 2n ** 53n + 1n, most];
const lineOf = (
  id: number,
  name: string,
  categoryId: bigint,
  status = 'sold',
) =>
  `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}\n`;

/** Imports a file with this content. */
function imported(content: string | Buffer, ...flags: string[]) {
  const file = folders.file('pets');
  writeFileSync(file, content);
  return cli(['import', '--input', file, ...flags], env());
}
/** The result of an import that has refused no line. */
const counted = (text: string) => ({
  code: 0,
  stdout: expect.stringMatching(`^${text} in .* s: \\d+/s\n$`),
  stderr: '',
});

async function exported(...flags: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(['export', ...flags], env());
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^\d+ exported.*: \d+\/s\n$/),
  });
  return stdout;
}

describe('export and import', () => {
  test('take - for standard output and standard input', async () => {
    const file = folders.file('pets');
    writeFileSync(file, lineOf(1, 'Rex', 1n));
    const command = [
      ...['sh', '-c', 'exec "$0" "$@" <"$FILE"'],
      ...[process.execPath, resolve('dist/bundle/cli.js')],
      ...['import', '--input', '-'],
    ];
    const { ended } = runCommand(command, {
      PATH: `${process.env.PATH}`,
      FILE: file,
      ...env(),
    });
    expect(await ended).toEqual({ ...counted('1 added'), signal: null });
    expect(await exported('--output', '-')).toBe(lineOf(1, 'Rex', 1n));
    expect(existsSync('-')).toBe(false);
  });

  test('keep every name and int64 byte for byte, in NDJSON and CSV; an NDJSON line equals the pet in a REST response', async () => {
    // An empty store assigns the same ids.
    const pets = names.map((name, at) =>
      lineOf(at + 1, name, numbers[at % numbers.length] as bigint, 'pending'),
    );
    const first = await imported(pets.join(''), 'pets', '--json');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const counts = { added: pets.length, same: 0, refused: 0 };
    expect(JSON.parse(first.stdout)).toEqual({
      ...counts,
      ms: expect.any(Number),
      perSecond: expect.any(Number),
    });
    expect(await exported()).toBe(pets.join(''));
    const { text } = await rest(await startServer(env()), '/v1/pets?limit=100');
    expect(`${text.slice(1, -1).replaceAll('},{', '}\n{')}\n`).toBe(
      pets.join(''),
    );

    const csv = folders.file('all.csv');
    expect(await cli(['export', '-o', csv], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(statSync(csv).mode & 0o777).toBe(0o600);
    await clear();
    expect(await cli(['import', '-i', csv], env())).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await exported('--format', 'csv')).toBe(readFileSync(csv, 'utf8'));
    expect(readFileSync(csv, 'utf8')).toContain(
      '\r\n1,"",-9223372036854775808,pending\r\n2," ",-1,pending\r\n',
    );
  });

  test('an export replaces a file only with --force, ends silently when its reader ends, and holds neither a transaction nor the embedded store while its reader pauses', async () => {
    const file = folders.file('taken');
    writeFileSync(file, 'mine');
    const taken = {
      code: 1,
      stderr: `animal-store: ${file} exists; --force overwrites it.\n`,
    };
    expect(await cli(['export', '-o', file], env())).toMatchObject(taken);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(await cli(['export', '-o', file, '--force'], env())).toMatchObject({
      code: 0,
    });
    expect(readFileSync(file, 'utf8')).toBe('');

    const server = await startServer(env());
    expect(await cli(['seed', '--count', '5000'], env())).toMatchObject({
      code: 0,
    });
    const shell = [
      'sh',
      '-c',
      '"$0" "$@" | head -n 1',
      process.execPath,
      'dist/bundle/cli.js',
      'export',
    ];
    const head = await runCommand(shell, {
      PATH: `${process.env.PATH}`,
      ...env(),
    }).ended;
    expect(head).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{"id":1,.*\}\n$/),
      stderr: '',
    });
    const { child, ended } = run('cli', ['export'], env());
    await once(child.stdout as Readable, 'data');
    child.stdout?.pause();
    const json = { name: 'meanwhile', categoryId: 1 };
    const created = await rest(server, '/v1/pets', { method: 'POST', json });
    expect(created).toMatchObject({ status: 201, json: { id: 5001 } });
    child.stdout?.resume();
    expect(await ended).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^500[01] exported/),
    });
  });
});

describe('an import', () => {
  test('an export shows a terminal no control character of a client, and a file gets all', async () => {
    await imported(lineOf(1, '\u001b]0;owned\u0007\u009b2J\rb', 1n));
    const onTerminal = async (format: string) => {
      const command = `"${process.execPath}" dist/bundle/cli.js export --format ${format}`;
      const all = { PATH: `${process.env.PATH}`, ...env() };
      return (
        await runCommand(['script', '-qec', command, '/dev/null'], all).ended
      ).stdout;
    };
    expect(await onTerminal('csv')).toContain('1,"?]0;owned??2J?b",1,sold');
    expect(await onTerminal('ndjson')).toContain(
      '"name":"\\u001b]0;owned\\u0007?2J\\rb"',
    );
    expect(await exported('--format', 'csv')).toContain(
      '1,"\u001b]0;owned\u0007\u009b2J\rb",1,sold\r\n',
    );
  });

  test('names each line that a creation would refuse and adds the others; a repetition adds no line', async () => {
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
      Buffer.concat([
        Buffer.from('{"id":10,"name":"'),
        Buffer.of(0xff),
        Buffer.from('","categoryId":5}\n'),
      ]),
      '{"name":"without id","categoryId":5}\n',
      `${lineOf(1, 'Rex', 5n).slice(0, -1)}\r\n`,
      '{"id":20,"name":"unknown members are ignored","categoryId":6,"owner":"Ada"}',
    ];
    const content = Buffer.concat(file.map((part) => Buffer.from(part)));
    const int64 = `categoryId must be an integer between ${least} and ${most}`;
    const surrogates = 'name must be free of U+0000 and of lone surrogates';
    const refused = [
      'line 3: categoryId is required.',
      `line 4: ${int64}, not a string.`,
      `line 5: ${int64}.`,
      `line 6: ${surrogates}; status must be one of available, pending, sold.`,
      `line 7: ${surrogates}.`,
      'line 8: name must be at most 1000 characters long.',
      'line 9: The line is longer than 65536 bytes.',
      'line 10: The line must be a JSON object.',
      expect.stringMatching(/^line 11: The line is not acceptable JSON: .*\.$/),
      'line 12: The line is not acceptable JSON: it is not valid UTF-8.',
    ];
    for (const counts of ['4 added', '0 added, 4 added before']) {
      const { code, stdout, stderr } = await imported(content);
      expect([code, stdout]).toEqual([
        3,
        expect.stringMatching(`^${counts}, 10 refused in .* s: \\d+/s\n$`),
      ]);
      expect(stderr.split('\n').slice(0, -1)).toEqual(refused);
      expect(stderr).not.toContain('\x1b');
    }
    const all = [
      lineOf(1, 'Rex', 5n),
      lineOf(2, 'without id', 5n, 'available'),
      lineOf(3, 'Rex', 5n),
      lineOf(4, 'unknown members are ignored', 6n, 'available'),
    ];
    expect(await imported(lineOf(21, 'dry', 1n), '--dry-run')).toMatchObject(
      counted('1 valid'),
    );
    expect(await exported()).toBe(all.join(''));
  });

  test('of a CSV names each invalid record, and keeps the records before a part that cannot be parsed', async () => {
    const head = '\ufeffname,status,categoryId\n';
    const csv = (rows: string) => imported(head + rows, '--format', 'csv');
    expect(
      await csv(
        '"two\nlines",,1\nRex,sold,5,6\n\n,available,7\nAda,gone,007\n',
      ),
    ).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^2 added, 2 refused in /),
      stderr:
        'line 4: The line has 4 fields instead of 3.\n' +
        `line 7: categoryId must be an integer between ${least} and ${most}, in plain digits; status must be one of available, pending, sold.\n`,
    });
    const message = 'animal-store: The rest of the CSV cannot be read:';
    for (const [rows, added, reason] of [
      ['Tom,sold,1\n"never closed', 1, 'Quote Not Closed'],
      [`"${'x'.repeat(700_000)}`, 0, 'Max Record Size'],
    ] as const) {
      const stderr = expect.stringContaining(`${message} ${reason}`);
      expect(await csv(rows)).toMatchObject({
        code: 1,
        stdout: expect.stringContaining(`${added} added`),
        stderr,
      });
    }
    const added = [
      lineOf(1, 'two\nlines', 1n, 'available'),
      lineOf(2, '', 7n, 'available'),
      lineOf(3, 'Tom', 1n),
    ];
    expect(await exported()).toBe(added.join(''));
  });

  test('that was killed or interrupted keeps the lines that it has added; a repetition adds the others', async () => {
    const lines = Array.from({ length: 4000 }, (_, at) =>
      lineOf(at + 1, `pet ${at}`, 1n),
    );
    const pipe = folders.file('pipe');
    execFileSync('mkfifo', [pipe]);
    const node = await openNode(database);
    await node.database.migrate();
    const command = [
      'sh',
      '-c',
      'exec "$0" "$@" <"$PIPE"',
      process.execPath,
      'dist/bundle/cli.js',
      'import',
    ];
    const start = () =>
      runCommand(command, {
        PATH: `${process.env.PATH}`,
        PIPE: pipe,
        ...env(),
      });
    for (const signal of ['SIGKILL', 'SIGINT'] as const) {
      const { child, ended, output } = start();
      const writer = await open(pipe, 'w');
      await writer.write(`${lines.slice(0, 2000).join('')}refused\n`);
      await eventually(
        async () =>
          (await sql(node.database, 'select from pet where id = 1000')).length >
          0,
      );
      await eventually(async () => /line 2001/.test(output.stderr));
      child.kill(signal);
      const { code, stderr } = await ended;
      const note =
        'interrupted: the lines added so far stay; the same command continues, unless with --again\n';
      expect([code, stderr.endsWith(note)]).toEqual(
        signal === 'SIGKILL' ? [null, false] : [130, true],
      );
      await writer.close();
    }
    await node.database.close();
    const last = start();
    const writer = await open(pipe, 'w');
    await writer.writeFile(lines.join(''));
    await writer.close();
    expect(await last.ended).toMatchObject(
      counted('\\d+ added, \\d+ added before'),
    );
    expect(await exported()).toBe(lines.join(''));
    expect(await exported('--after', '3998')).toBe(lines.slice(-2).join(''));
  });

  test('adds each line of a file once, except with --again or when the file has changed; a line that only the database refuses is named', async () => {
    const content = lineOf(7, 'Rex', 1n) + lineOf(7, 'Rex', 1n);
    expect(await imported(content)).toMatchObject(counted('2 added'));
    expect(await imported(content, '--again')).toMatchObject(
      counted('2 added'),
    );
    expect(await imported(content.replace('Rex', 'Tom'))).toMatchObject(
      counted('1 added, 1 added before'),
    );
    await change(`alter table pet add constraint odd check (name <> 'odd')`);
    const refused = expect.stringMatching(
      /^line 2: the database refuses it: .*"odd".*\n$/,
    );
    const lines =
      lineOf(1, 'even', 1n) + lineOf(2, 'odd', 1n) + lineOf(3, 'even', 1n);
    expect(await imported(lines)).toMatchObject({ code: 3, stderr: refused });
    const added = ['Rex', 'Rex', 'Rex', 'Rex', 'Tom', 'even', 'even'];
    const all = (await exported()).split('\n').slice(0, -1);
    expect(all.map((line) => JSON.parse(line).name)).toEqual(added);
  });
});

test('seeded animals have plausible values; a shorter run gives the same first animals', async () => {
  const { stdout, stderr, code } = await cli(
    ['seed', 'pets', '--count', '300', '--json'],
    env(),
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ added: 300, refused: 0 });
  const all = await exported();
  await clear();
  expect(await cli(['seed', '--count', '100'], env())).toMatchObject({
    code: 0,
  });
  expect(all.startsWith(await exported())).toBe(true);
  const pets = JSON.parse(`[${all.trim().replaceAll('\n', ',')}]`) as Record<
    string,
    string
  >[];
  for (const { name } of pets)
    expect(name).toMatch(/^\p{L}+ the \p{L}+(?: \p{L}+)?$/u);
  expect(new Set(pets.map(({ status }) => status)).size).toBe(3);
  expect(new Set(pets.map(({ categoryId }) => categoryId)).size).toBe(6);
  expect(await cli(['seed', 'dragons'], env())).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^animal-store: There is no collection dragons; the collections are: pets/,
    ),
  });
});

test('help lists the commands in a group of their own', async () => {
  const { stdout } = await cli(['--help'], {});
  expect(stdout).toMatch(
    /\nData:\n {2}seed .*\n(?: {3,}.*\n)* {2}export .*\n(?: {3,}.*\n)* {2}import .*\n/,
  );
});
