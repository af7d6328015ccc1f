import { readFileSync } from 'node:fs';
import { coreVariables } from '#engine/config/config.js';
import { createTestDatabase } from '../support/database.ts';
import { sql } from '../support/database-access.ts';
import { databaseForEach } from '../support/fixtures.ts';
import { send } from '../support/http.ts';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { openNode } from '../support/migrations.ts';
import {
  cli,
  eventually,
  freePort,
  bootstrapKey as key,
  killAll,
  run,
} from '../support/process.ts';
import { rest } from '../support/rest.ts';

afterEach(killAll);

const program = (...args: string[]) => cli(args, {});

describe('help', () => {
  test('lists the commands in groups, with examples, even with an invalid configuration', async () => {
    const { code, stdout, stderr } = await cli(['--help'], { PORT: 'none' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const groups = [
      'The service:',
      'Keys:',
      'The database:',
      'Tools:',
      'Examples:',
      'Exit codes:',
    ];
    const places = groups.map((group) => stdout.indexOf(`\n${group}`));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
    for (const command of ['start', 'doctor', 'keys', 'migrate', 'schema']) {
      expect(stdout).toMatch(new RegExp(`^ {2}${command} .* {2}\\S`, 'm'));
    }
  });

  test('explains a command', async () => {
    const [option, argument] = await Promise.all([
      program('keys', 'issue', '--help'),
      program('keys', 'help', 'issue'),
    ]);
    expect(option).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('--scope <scopes>'),
    });
    expect(argument).toEqual(option);
    expect(option.stdout).toContain(
      '\nExamples:\n  animal-store keys issue --name shop-frontend',
    );
  });

  test('of `start` lists every variable of the configuration with its default', async () => {
    const { stdout } = await program('start', '--help');
    const lines = stdout.split('\n');
    for (const [name, { desc }] of Object.entries(coreVariables)) {
      expect(lines.find((line) => line.startsWith(`  ${name} `))).toContain(
        desc,
      );
    }
    expect(stdout).toMatch(/^ {2}PORT +TCP port to listen on\. \(4000\)$/m);
    expect(stdout).toMatch(
      /^ {2}LOG_LEVEL +Lowest level that is logged \(logs.md\)\. One of fatal, .*, silent\. \(info\)$/m,
    );
  });

  test('has colours with FORCE_COLOR, unless NO_COLOR is set', async () => {
    const [plain, wanted, refused] = await Promise.all([
      cli(['--help'], {}),
      cli(['--help'], { FORCE_COLOR: '1' }),
      cli(['--help'], { FORCE_COLOR: '1', NO_COLOR: '1' }),
    ]);
    expect(wanted.stdout).toContain('\x1b[1mExamples:\x1b[22m');
    expect(wanted.stdout.replace(/\x1b\[\d+m/g, '')).toBe(plain.stdout);
    expect(refused.stdout).toBe(plain.stdout);
  });
});

test('the version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await program('--version')).toEqual({
    code: 0,
    signal: null,
    stdout: `${version}\n`,
    stderr: '',
  });
});

test.each([
  [
    ['keys', 'isue'],
    "unknown command 'isue'\n(Did you mean issue?)\nSee `animal-store keys --help`.",
  ],
  [
    ['migrate', '--jsn'],
    "unknown option '--jsn'\n(Did you mean --json?)\nSee `animal-store migrate --help`.",
  ],
  [
    ['keys', 'revoke'],
    "missing required argument 'id'\nSee `animal-store keys revoke --help`.",
  ],
])('wrong usage exits with 2 and a suggestion: %j', async (args, message) => {
  expect(await program(...args)).toEqual({
    code: 2,
    signal: null,
    stdout: '',
    stderr: `animal-store: ${message}\n`,
  });
});

describe('with a database', () => {
  const database = databaseForEach(createTestDatabase);

  test('`migrate` prints the migrations that it has applied, as text or JSON', async () => {
    expect(await cli(['migrate', '--json'], database.env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{"applied":\["2026[^\n]*"\]\}\n$/),
      stderr: '',
    });
    const again = { code: 0, signal: null, stderr: '' };
    expect(await cli(['migrate', '--json'], database.env)).toEqual({
      ...again,
      stdout: '{"applied":[]}\n',
    });
    expect(await cli(['migrate'], database.env)).toEqual({
      ...again,
      stdout: 'the database is up to date\n',
    });
  });

  test('`start` runs the service; its flags override the environment', async () => {
    const port = await freePort();
    const env = { ...database.env, PORT: '1', BOOTSTRAP_API_KEY: key };
    const service = run('cli', ['start', '--port', `${port}`], env);
    const origin = `http://127.0.0.1:${port}`;
    await eventually(
      async () => (await send(origin, { path: '/readyz' })).status === 200,
    );
    expect((await rest({ origin, key }, '/v1/pets')).json).toEqual([]);
    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('`keys` applies no migration if its tables exist, and all migrations if they are missing', async () => {
    expect(
      await cli(['keys', 'issue', '--name', 'shop'], database.env),
    ).toMatchObject({ code: 0, stderr: '' });
    const { database: open } = await openNode(database);
    const applied = () =>
      sql(open, 'select count(*) from mikro_orm_migrations');
    await sql(
      open,
      "delete from mikro_orm_migrations where name like '%create_idempotency_key'",
    );
    const before = await applied();
    const listed = { code: 0, stdout: expect.stringContaining('shop') };
    expect(await cli(['keys', 'list'], database.env)).toMatchObject(listed);
    expect(await applied()).toEqual(before);
    await open.close();
  });
});

describe('output that nobody reads', () => {
  const database = databaseForEach();
  test.each([
    [['doctor']],
    [['keys', 'list', '--json']],
    [['start', '--help']],
  ])('%j ends with 141, and without a word', async (args) => {
    const { child, ended } = run('cli', args, database.env);
    child.stdout?.destroy();
    expect(await ended).toMatchObject({ code: 141, stderr: '' });
  });
});
