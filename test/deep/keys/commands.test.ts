import { hostname, userInfo } from 'node:os';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForAll } from '../../support/fixtures.ts';
import { beforeAll, expect, test } from '../../support/jest.ts';
import {
  cli,
  type Env,
  eventually,
  onPostgres,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** The commands run beside a running service. Both open the embedded store. */
const database = databaseForAll();
let server: ServerProcess;
beforeAll(async () => {
  const BOOTSTRAP_API_KEY = 'commands-0123456789abcdef0123456789';
  server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY,
    LOG_LEVEL: 'warn',
  });
});

const keys = (...args: string[]) => cli(['keys', ...args], database.env);

/**
 * Runs with `--json` and parses the output, which must be one line of JSON and
 * nothing else.
 */
async function jsonOf(env: Env, ...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await cli(['keys', ...args, '--json'], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^[[{].*[\]}]\n$/);
  return JSON.parse(stdout);
}
const keysJson = (...args: string[]) => jsonOf(database.env, ...args);

const isoDate = expect.stringMatching(
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
);
const key = expect.stringMatching(/^ask_[0-9A-Za-z]{49}$/);
const moment = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ';
const me = { user: userInfo().username, host: hostname() };
const hintOf = (secret: string) => `${secret.slice(0, 8)}...`;
const status = async (secret: string) =>
  (await rest(server, '/v1/pets', { key: secret })).status;

test('with --json the commands print exactly the documented members; the running service applies each change, and the history records it', async () => {
  const before = Date.now();
  const flags = [
    '--name',
    'shop frontend',
    '--scope',
    'read',
    '--expires',
    '90d',
  ];
  const issued = await jsonOf(
    { ...database.env, SUDO_USER: 'eve\u001b[2J' },
    'issue',
    ...flags,
  );
  const members = {
    id: expect.any(Number),
    name: 'shop frontend',
    scope: 'read',
    expiresAt: isoDate,
  };
  expect(issued).toEqual({ ...members, key });
  expect(Date.parse(issued.expiresAt) - before).toBeGreaterThan(
    89.9 * 86_400_000,
  );

  const row = {
    ...members,
    hint: hintOf(issued.key),
    createdAt: isoDate,
    lastUsedAt: null,
    revokedAt: null,
  };
  expect(await keysJson('list')).toEqual([row]);
  expect(await status(issued.key)).toBe(200);

  const rotated = await keysJson('rotate', `${issued.id}`, '--overlap', '30m');
  expect(rotated).toEqual({ ...issued, key, previousExpiresAt: isoDate });
  expect(rotated.key).not.toBe(issued.key);
  expect([await status(issued.key), await status(rotated.key)]).toEqual([
    200, 200,
  ]);

  const revoked = await keysJson('revoke', `${issued.id}`);
  const after = { ...row, hint: hintOf(rotated.key), revokedAt: isoDate };
  expect({ ...revoked, lastUsedAt: null }).toEqual(after);
  for (const secret of [issued.key, rotated.key])
    await eventually(async () => (await status(secret)) === 401);

  // An event has its time, key, user, host and command.
  const common = {
    id: expect.any(Number),
    at: isoDate,
    key: issued.id,
    sudoUser: null,
    ...me,
  };
  const events = await keysJson('history');
  expect(events).toEqual([
    {
      ...common,
      change: 'issued',
      hint: hintOf(issued.key),
      sudoUser: 'eve\u001b[2J',
      command: 'keys issue',
    },
    {
      ...common,
      change: 'rotated',
      hint: hintOf(rotated.key),
      command: 'keys rotate',
    },
    {
      ...common,
      change: 'revoked',
      hint: hintOf(rotated.key),
      command: 'keys revoke',
    },
  ]);
  for (const { at } of events)
    expect(Math.abs(Date.parse(at) - before)).toBeLessThan(600_000);
  // A command that changes nothing records no event.
  expect((await keys('revoke', `${issued.id}`)).code).toBe(0);
  expect((await keys('rotate', `${issued.id}`)).code).toBe(1);
  expect(await keysJson('history')).toEqual(events);
});

test('without --json keys and their history are tables, without secrets and without control characters', async () => {
  const { stdout: printed } = await keys(
    'issue',
    '--name',
    'for people',
    '--scope',
    'read',
  );
  const [, id, secret = ''] =
    /^key (\d+) \(for people, read\): (ask_\w{49})\n$/.exec(printed) ?? [];
  for (const [command, head, line] of [
    [
      'list',
      /^id +name +scope +hint +createdAt +expiresAt +lastUsedAt +revokedAt\n/,
      `^${id} +for people +read +${secret.slice(0, 8)}\\.\\.\\. +${moment} +- +- +-$`,
    ],
    [
      'history',
      /^id +at +change +key +hint +user +sudoUser +host +command\n/,
      `^\\d+ +${moment} +issued +\\d+ +ask_\\w{4}\\.\\.\\. +\\S+ +eve\\?\\[2J +\\S+ +keys issue$`,
    ],
  ] as const) {
    const { stdout, ...ended } = await keys(command);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(stdout).toMatch(head);
    expect(stdout).toMatch(new RegExp(line, 'm'));
    expect(stdout).not.toMatch(/ask_\w{5}/);
  }
});

test('scopes are printed as --scope takes them', async () => {
  const flags = ['--name', 'scoped', '--scope'];
  const scope = 'pets:read,store:write,all';
  const { stdout } = await keys('issue', ...flags, scope);
  expect(stdout).toContain(`(scoped, ${scope}): ask_`);
  expect((await keys('list')).stdout).toContain(` ${scope} `);
  const ofScoped = ({ name }: { name: string }) => name === 'scoped';
  const [listed] = (await keysJson('list')).filter(ofScoped);
  expect(listed.scope).toBe(scope);
  const issued = await keysJson('issue', ...flags, listed.scope);
  expect((await keys('issue', ...flags, issued.scope)).code).toBe(0);
});

test('a key that is issued with a name alone has the expiresAt null and the scope write; --expires may be a date', async () => {
  expect(await keysJson('issue', '--name', 'plain')).toMatchObject({
    scope: 'write',
    expiresAt: null,
  });
  for (const date of ['2099-01-31', '2099-01-31T00:00Z']) {
    const expiresAt = '2099-01-31T00:00:00.000Z';
    expect(
      await keysJson('issue', '--name', 'dated', '--expires', date),
    ).toMatchObject({ expiresAt });
  }
  expect(await keysJson('deprecations')).toEqual([]);
});

test.each([
  [
    ['issue', '--name', 'x', '--scope', 'admin'],
    /It must be read, write or all, or one of a module \(visits\) like visits:read, not "admin"/,
  ],
  [
    ['issue', '--name', 'x', '--scope', 'all,pets:all'],
    /It permits nothing: all opens rows of others to read or write, as in read,all/,
  ],
  [
    ['issue', '--name', 'x', '--scope', 'read,pots:read'],
    /^animal-store: --scope must be .* one of a module \(pets, store, webhooks\) like pets:read, not "pots:read"/,
  ],
  [
    ['issue', '--name', 'x', '--expires', 'soon'],
    /It must be a time like 90d, 12h, 30m or 10s/,
  ],
  [
    ['issue', '--name', 'x', '--expires', '2001-01-01'],
    /It must be in the future/,
  ],
  [
    ['issue', '--name', 'x', '--expires', '2099-02-31'],
    /There is no such date/,
  ],
  [['issue', '--name', 'x', '--expires', '0'], /It must be in the future/],
  [['rotate', 'one'], /It must be a whole number/],
  [['rotate', '1', '--overlap', '1 hour'], /It must be a time like/],
  [
    ['rotate', '999999'],
    /^animal-store: There is no key with the id 999999\.\n$/,
  ],
  [
    ['revoke', '999999'],
    /^animal-store: There is no key with the id 999999\.\n$/,
  ],
  [['list', 'all'], /too many arguments/],
])(
  'keys %j is refused on standard error, with nothing on standard output',
  async (args, message) => {
    const { code, stdout, stderr } = await keys(...args, '--json');
    expect({ code, stdout }).toEqual({
      code: args[1] === '999999' ? 1 : 2,
      stdout: '',
    });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
  },
);

test('the name of a key is plain text, even if the shell, PostgreSQL or the embedded store could interpret it', async () => {
  for (const name of [
    "'; copy pet from stdin; --",
    'käse 🐕 ?; select 1\n$$ \\',
  ]) {
    const issued = await keysJson('issue', '--name', name);
    expect(issued).toMatchObject({ name, key });
    expect(await status(issued.key)).toBe(200);
    expect(await keysJson('list')).toContainEqual(
      expect.objectContaining({ id: issued.id, name }),
    );
  }
});

(onPostgres ? test.skip : test)(
  'the first key of an embedded store is recorded, too (embedded store only)',
  async () => {
    const own = await createOwnDatabase();
    expect((await cli(['keys', 'history'], own.env)).stdout).toBe(
      'No key has been changed.\n',
    );
    const server = await startServer(own.env);
    await eventually(async () => server.output.stdout.includes('Try it:'));
    const [secret = ''] = /ask_\w{49}/.exec(server.output.stdout) ?? [];
    expect(await jsonOf(own.env, 'history')).toEqual([
      {
        id: 1,
        at: isoDate,
        change: 'issued',
        key: 1,
        hint: hintOf(secret),
        sudoUser: null,
        ...me,
        command: 'start',
      },
    ]);
    expect((await server.stop()).stdout).toContain(
      '"key":1,"msg":"first key issued"',
    );
    await own.drop();
  },
);
