import { databaseForAll } from '../../support/each.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { cli, eventually, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** The commands against a service that runs: on the embedded store both have it open. */
const database = databaseForAll();
let server: ServerProcess;
beforeAll(async () => {
  server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: 'commands-0123456789abcdef0123456789',
    LOG_LEVEL: 'warn',
  });
});

const keys = (...args: string[]) => cli(['keys', ...args], database.env);

/** Runs with `--json` and reads what is printed, which must be one line of JSON and nothing else. */
async function keysJson(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await keys(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^[[{].*[\]}]\n$/);
  return JSON.parse(stdout);
}

const isoDate = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const status = async (key: string) => (await rest(server, '/v1/pets', { key })).status;

describe('with --json', () => {
  test('issue, list, rotate and revoke print exactly what they promise, and the running service obeys', async () => {
    const issued = await keysJson('issue', '--name', 'shop frontend', '--scope', 'read', '--expires', '90d');
    const members = { id: expect.any(Number), name: 'shop frontend', scope: 'read', expiresAt: isoDate };
    expect(issued).toEqual({ ...members, key: expect.stringMatching(/^ask_[0-9A-Za-z]{49}$/) });
    expect(Date.parse(issued.expiresAt) - Date.now()).toBeGreaterThan(89.9 * 86_400_000);

    const row = {
      ...members,
      hint: `${issued.key.slice(0, 8)}...`,
      createdAt: isoDate,
      lastUsedAt: null,
      revokedAt: null,
    };
    expect(await keysJson('list')).toEqual([row]);
    expect(await status(issued.key)).toBe(200);

    const rotated = await keysJson('rotate', `${issued.id}`, '--overlap', '30m');
    expect(rotated).toEqual({
      ...issued,
      key: expect.stringMatching(/^ask_[0-9A-Za-z]{49}$/),
      previousExpiresAt: isoDate,
    });
    expect(rotated.key).not.toBe(issued.key);
    expect([await status(issued.key), await status(rotated.key)]).toEqual([200, 200]);

    const revoked = await keysJson('revoke', `${issued.id}`);
    const after = { ...row, hint: `${rotated.key.slice(0, 8)}...`, lastUsedAt: expect.anything(), revokedAt: isoDate };
    expect({ ...revoked, lastUsedAt: 0 }).toEqual({ ...after, lastUsedAt: 0 });
    for (const key of [issued.key, rotated.key]) await eventually(async () => (await status(key)) === 401);
  });

  test('a key without an end has the expiresAt null, and the scope write', async () => {
    expect(await keysJson('issue', '--name', 'plain')).toMatchObject({ scope: 'write', expiresAt: null });
  });

  test.each(['2099-01-31', '2099-01-31T00:00Z', '2099-01-31T00:00:00.000Z'])(
    'the end may be the date %s',
    async (date) => {
      expect(await keysJson('issue', '--name', 'dated', '--expires', date)).toMatchObject({
        expiresAt: '2099-01-31T00:00:00.000Z',
      });
    },
  );

  test('deprecations is an array', async () => {
    expect(await keysJson('deprecations')).toEqual([]);
  });
});

describe('without --json', () => {
  test('issue prints the secret once, list a table without it', async () => {
    const { stdout } = await keys('issue', '--name', 'for people', '--scope', 'read');
    const [, id, secret = ''] = /^key (\d+) \(for people, read\): (ask_\w{49})\n$/.exec(stdout) ?? [];
    const list = (await keys('list')).stdout.split('\n');
    expect(list[0]).toMatch(/^id +name +scope +hint +createdAt +expiresAt +lastUsedAt +revokedAt$/);
    const moment = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ';
    const line = list.find((text) => text.startsWith(`${id} `));
    expect(line).toMatch(new RegExp(`^${id} +for people +read +${secret.slice(0, 8)}\\.\\.\\. +${moment} +- +- +-$`));
    expect(list.join('\n')).not.toContain(secret);
  });
});

test.each([
  [['issue'], /required option '--name <name>' not specified/],
  [['issue', '--name', 'x', '--scope', 'admin'], /Allowed choices are read, write/],
  [['issue', '--name', 'x', '--expires', 'soon'], /It must be a time like 90d, 12h, 30m or 10s/],
  [['issue', '--name', 'x', '--expires', '2001-01-01'], /It must be in the future/],
  [['issue', '--name', 'x', '--expires', '2099-13-45'], /There is no such date/],
  [['issue', '--name', 'x', '--expires', '2099-02-31'], /There is no such date/],
  [['issue', '--name', 'x', '--expires', '2099-01-31T25:00Z'], /It must be in the future/],
  [['issue', '--name', 'x', '--expires', '0'], /It must be in the future/],
  [['issue', '--name', 'x', '--expires', '-1d'], /It must be a time like/],
  [['rotate'], /missing required argument 'id'/],
  [['rotate', 'one'], /It must be a whole number/],
  [['rotate', '1', '--overlap', '1 hour'], /It must be a time like/],
  [['rotate', '999999'], /^animal-store: There is no key with the id 999999\.\n$/],
  [['revoke', '999999'], /^animal-store: There is no key with the id 999999\.\n$/],
  [['revoke', "1'; drop table api_key;--"], /It must be a whole number/],
  [['list', 'all'], /too many arguments/],
  [['destroy'], /unknown command 'destroy'/],
])('keys %j is refused on standard error, with nothing on standard output', async (args, message) => {
  const { code, stdout, stderr } = await keys(...args, ...(args[0] === 'destroy' ? [] : ['--json']));
  expect({ code, stdout }).toEqual({ code: args[1] === '999999' ? 1 : 2, stdout: '' });
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test('a key that has expired cannot be rotated: its new secret would be dead already', async () => {
  const { id, expiresAt } = await keysJson('issue', '--name', 'short-lived', '--expires', '1s');
  await eventually(async () => Date.now() > Date.parse(expiresAt));
  expect(await keys('rotate', `${id}`, '--json')).toEqual({
    code: 1,
    signal: null,
    stdout: '',
    stderr: `animal-store: The key ${id} has expired; issue a new one.\n`,
  });
});

test('what a key is called is text, whatever it looks like to the shell, to PostgreSQL and to the embedded one', async () => {
  for (const name of ["'; copy pet from stdin; --", 'käse 🐕 ?; select 1\n$$ \\']) {
    const issued = await keysJson('issue', '--name', name);
    expect(issued).toMatchObject({ name, key: expect.stringMatching(/^ask_\w{49}$/) });
    expect(await status(issued.key)).toBe(200);
    expect(await keysJson('list')).toContainEqual(expect.objectContaining({ id: issued.id, name }));
  }
});
