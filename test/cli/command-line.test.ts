import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { variables } from '../../src/config.ts';
import { createOwnDatabase } from '../support/database.ts';
import { databaseForEach } from '../support/each.ts';
import { send } from '../support/http.ts';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { cli, eventually, freePort, killAll, run } from '../support/process.ts';
import { rest } from '../support/rest.ts';

afterEach(killAll);

const program = (...args: string[]) => cli(args, {});

describe('help', () => {
  test('lists the commands in groups, with examples, at once and whatever the configuration is', async () => {
    const { code, stdout, stderr } = await cli(['--help'], { PORT: 'none' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const groups = ['The service:', 'Keys:', 'The database:', 'Data:', 'Tools:', 'Examples:', 'Exit codes:'];
    const places = groups.map((group) => stdout.indexOf(`\n${group}`));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
    for (const command of [
      'start',
      'doctor',
      'bench',
      'keys',
      'migrate',
      'backup',
      'seed',
      'export',
      'import',
      'completion',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${command} .* {2}\\S`, 'm'));
    }
  });

  test('explains a command however it is asked', async () => {
    const asked = await Promise.all([
      program('help', 'keys', 'issue'),
      program('keys', 'issue', '--help'),
      program('keys', 'help', 'issue'),
    ]);
    const [first] = asked;
    expect(first).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('--scope <scope>') });
    for (const other of asked) expect(other).toEqual(first);
  });

  test('of `start` says every variable of the configuration with its default', async () => {
    const { stdout } = await program('start', '--help');
    const lines = stdout.split('\n');
    for (const [name, { desc }] of Object.entries(variables)) {
      expect(lines.find((line) => line.startsWith(`  ${name} `))).toContain(desc);
    }
    expect(stdout).toMatch(/^ {2}PORT +TCP port to listen on\. \(4000\)$/m);
    expect(stdout).toMatch(/^ {2}LOG_LEVEL +How much is logged\. One of fatal, .*, silent\. \(info\)$/m);
  });

  test('has colours on a terminal, or where they are wanted', async () => {
    const [plain, wanted, refused] = await Promise.all([
      cli(['--help'], {}),
      cli(['--help'], { FORCE_COLOR: '1' }),
      cli(['--help'], { FORCE_COLOR: '1', NO_COLOR: '1' }),
    ]);
    expect(plain.stdout).not.toContain('\x1b');
    expect(wanted.stdout).toContain('\x1b[1mExamples:\x1b[22m');
    expect(wanted.stdout).toContain('\x1b[1mKeys:\x1b[22m');
    expect(wanted.stdout.replace(/\x1b\[\d+m/g, '')).toBe(plain.stdout);
    expect(refused.stdout).toBe(plain.stdout);
  });
});

test('the version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await program('--version')).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: '' });
});

test.each([
  [['strat'], "unknown command 'strat'\n(Did you mean start?)\nSee `animal-store --help`."],
  [['keys', 'isue'], "unknown command 'isue'\n(Did you mean issue?)\nSee `animal-store keys --help`."],
  [['help', 'keys', 'isue'], "unknown command 'isue'\nSee `animal-store keys --help`."],
  [['migrate', '--jsn'], "unknown option '--jsn'\n(Did you mean --json?)\nSee `animal-store migrate --help`."],
  [['distribute'], 'give either --reference or --shards <n>\nSee `animal-store distribute --help`.'],
  [
    ['distribute', '--reference', '--shards', '4'],
    "option '--reference' cannot be used with option '--shards <n>'\nSee `animal-store distribute --help`.",
  ],
])('wrong usage ends with 2, and says what was meant: %j', async (args, why) => {
  expect(await program(...args)).toEqual({ code: 2, signal: null, stdout: '', stderr: `animal-store: ${why}\n` });
});

describe('with a database', () => {
  const database = databaseForEach(createOwnDatabase);

  test('`migrate` says what it has applied, in JSON too', async () => {
    expect(await cli(['migrate', '--json'], database.env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{"applied":\["2026[^\n]*"\]\}\n$/),
      stderr: '',
    });
    const again = { code: 0, signal: null, stderr: '' };
    expect(await cli(['migrate', '--json'], database.env)).toEqual({ ...again, stdout: '{"applied":[]}\n' });
    expect(await cli(['migrate'], database.env)).toEqual({ ...again, stdout: 'the database is up to date\n' });
  });

  test('`start` serves, its flags before the environment, with workers; `bench` says how fast, and fails when it is refused', async () => {
    const port = await freePort();
    const key = 'a-key-for-these-tests-and-no-others';
    const env = { ...database.env, PORT: '1', BOOTSTRAP_API_KEY: key };
    const service = run('cli', ['start', '--port', `${port}`, '--workers', '2'], env);
    const origin = `http://127.0.0.1:${port}`;
    await eventually(async () => (await send(origin, { path: '/readyz' })).status === 200);
    expect((await rest({ origin, key }, '/v1/pets')).json).toEqual([]);
    const options = ['bench', '--url', origin, '--seconds', '1', '--connections', '1', '--json'];
    const measured = await cli(options, { ANIMAL_STORE_KEY: key });
    expect(measured).toMatchObject({ code: 0, stderr: '' });
    const results: any[] = JSON.parse(measured.stdout);
    expect(results.map(({ what, others }) => ({ what, others }))).toEqual([
      { what: 'REST: a list of 20', others: {} },
      { what: 'GraphQL: the same list', others: {} },
    ]);
    for (const { answers, p50, p99 } of results) {
      expect(answers).toBeGreaterThan(0);
      expect(p99).toBeGreaterThanOrEqual(p50);
      expect(p50).toBeGreaterThan(0);
    }
    const refused = await cli(options, { ANIMAL_STORE_KEY: `${key}-not` });
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toEqual([
      expect.objectContaining({ answers: 0, others: { 401: expect.any(Number) } }),
      expect.objectContaining({ answers: 0, others: { 401: expect.any(Number) } }),
    ]);

    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0, stderr: '' });
    expect(service.output.stdout.match(/"msg":"worker started"/g)).toHaveLength(2);
  });
});

test.each([
  [[], 'a key is needed: --key, or ANIMAL_STORE_KEY'],
  [['--url', 'https://shop.example'], "option '--url <url>' argument 'https://shop.example' is invalid"],
  [['--seconds', '601'], "option '--seconds <n>' argument '601' is invalid. 1 to 600."],
])('`bench %j` is refused', async (args, why) => {
  const { code, stderr } = await program('bench', ...args);
  expect({ code, stderr: stderr.includes(why) }).toEqual({ code: 2, stderr: true });
});

describe('completion in bash', () => {
  /** What bash itself offers, once it has read the script. */
  const offered = (...words: string[]): string[] =>
    execFileSync(
      'bash',
      [
        '-c',
        'eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' +
          // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
          'handler=$(complete -p animal-store); handler=${handler#*-F }; "${handler%% *}"; printf "%s\\n" "${COMPREPLY[@]}"',
        'bash',
        script,
        ...words,
      ],
      { encoding: 'utf8' },
    )
      .split('\n')
      .filter(Boolean);
  let script = '';

  test('knows commands, their options and values, and leaves files to bash', async () => {
    script = (await program('completion', 'bash')).stdout;
    expect(offered('animal-store', 'ke')).toEqual(['keys']);
    expect(offered('animal-store', 'keys', 'r')).toEqual(['rotate', 'revoke']);
    expect(offered('animal-store', 'keys', 'issue', '--')).toEqual(
      expect.arrayContaining(['--name', '--scope', '--expires', '--json', '--help']),
    );
    expect(offered('animal-store', 'keys', 'issue', '--json', '--scope', '')).toEqual(['read', 'write']);
    expect(offered('animal-store', 'keys', 'issue', '--scope', '=', 'w')).toEqual(['write']);
    expect(offered('animal-store', 'completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(offered('animal-store', 'import', '--')).toEqual(
      expect.arrayContaining(['--input', '--format', '--ids', '--rejects', '--dry-run', '--json']),
    );
    expect(offered('animal-store', 'import', '--ids', '')).toEqual(['keep', 'new']);
    expect(offered('animal-store', 'export', '--format', 'c')).toEqual(['csv']);
    expect(offered('animal-store', 'backup', '')).toEqual([]);
    expect(script).toContain('complete -o default -F');
  });
});

test.each(['bash', 'zsh', 'fish'])('the script for %s has every command', async (shell) => {
  const { code, stdout, stderr } = await program('completion', shell);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const words of ['start', 'keys', 'issue', 'deprecations', 'migrate', 'doctor', 'seed', 'count'])
    expect(stdout).toContain(words);
});
