import { hostname, userInfo } from 'node:os';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForAll } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { cli, type Env, eventually, onPostgres, startServer } from '../../support/process.ts';

const database = databaseForAll();

const keys = (args: string[], env: Env = {}, of = database) => cli(['keys', ...args], { ...of.env, ...env });

async function keysJson(args: string[], env: Env = {}, of = database): Promise<any> {
  const { code, stdout, stderr } = await keys([...args, '--json'], env, of);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

const isoDate = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const me = { user: userInfo().username, host: hostname() };
const hintOf = (key: string) => `${key.slice(0, 8)}...`;

test('issue, rotation and revocation are recorded: when, which key, by whom, where and through which command', async () => {
  const before = Date.now();
  const issued = await keysJson(['issue', '--name', 'audited'], { SUDO_USER: 'eve\u001b[2J' });
  const rotated = await keysJson(['rotate', `${issued.id}`]);
  await keysJson(['revoke', `${issued.id}`]);
  const events = await keysJson(['history']);
  const id = expect.any(Number);
  const common = { id, at: isoDate, key: issued.id, sudoUser: null, ...me };
  expect(events).toEqual([
    { ...common, change: 'issued', hint: hintOf(issued.key), sudoUser: 'eve\u001b[2J', command: 'keys issue' },
    { ...common, change: 'rotated', hint: hintOf(rotated.key), command: 'keys rotate' },
    { ...common, change: 'revoked', hint: hintOf(rotated.key), command: 'keys revoke' },
  ]);
  for (const { at } of events) expect(Math.abs(Date.parse(at) - before)).toBeLessThan(600_000);

  // What changes nothing leaves nothing.
  expect((await keys(['revoke', `${issued.id}`])).code).toBe(0);
  expect((await keys(['rotate', `${issued.id}`])).code).toBe(1);
  expect((await keys(['revoke', '999999'])).code).toBe(1);
  expect(await keysJson(['list'])).toHaveLength(1);
  expect(await keysJson(['history'])).toEqual(events);
});

test('for people it is a table, without any secret, and without what a terminal would obey', async () => {
  const { stdout, stderr, code } = await keys(['history']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [head, first] = stdout.split('\n');
  expect(head).toMatch(/^id +at +change +key +hint +user +sudoUser +host +command$/);
  expect(first).toMatch(
    /^\d+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +issued +\d+ +ask_\w{4}\.\.\. +\S+ +eve\?\[2J +\S+ +keys issue$/,
  );
  expect(stdout).not.toMatch(/ask_\w{5}/);
});

(onPostgres ? test.skip : test)(
  'the first key of an embedded store is recorded, too (embedded store only)',
  async () => {
    const own = await createOwnDatabase();
    expect((await keys(['history'], {}, own)).stdout).toBe('No key has been changed.\n');
    const server = await startServer(own.env);
    await eventually(async () => server.output.stdout.includes('Explore:'));
    const [key = ''] = /ask_\w{49}/.exec(server.output.stdout) ?? [];
    expect(await keysJson(['history'], {}, own)).toEqual([
      { id: 1, at: isoDate, change: 'issued', key: 1, hint: hintOf(key), sudoUser: null, ...me, command: 'start' },
    ]);
    expect((await server.stop()).stdout).toContain('"key":1,"msg":"first key issued"');
    await own.drop();
  },
);
