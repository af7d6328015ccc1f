// runs: embedded, postgres

import { createTestDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { cli, onPlainPostgres } from '../../../support/process.ts';
import { doctor, ok } from '../../support/doctor.ts';

const database = databaseForEach(createTestDatabase);

test('commands add, list, test, rotate, replay and remove an endpoint, and doctor counts them', async () => {
  const env = { ...database.env, WEBHOOKS: 'true' };
  const run = async (...args: string[]) => {
    const all = ['webhooks', ...args, '--json'];
    const { code, stdout, stderr } = await cli(all, env);
    return code === 0 ? JSON.parse(stdout) : stderr;
  };
  const url = 'https://shop.example/hook';
  const [made] = await run('create', '--url', url, '--types', 'pets.added');
  const secret = expect.stringMatching(/^whsec_/);
  const row = { id: 1, url, types: ['pets.added'], owner: 'key:0' };
  const idle = { state: 'active', position: 0, deliveries: [] };
  expect(made).toEqual({ ...row, ...idle, secret });
  expect(await run('list')).toEqual([{ ...row, ...idle, secret: null }]);
  expect(await run('test', '1')).toMatchObject([row]);
  const [rotated] = await run('rotate', '1');
  expect(rotated.secret).not.toBe(made.secret);
  expect(await run('replay', '1', '7')).toMatchObject([{ position: 7 }]);
  const last = `${2n ** 63n - 1n}`;
  const position = Number(last);
  expect(await run('replay', '1', last)).toMatchObject([{ position }]);
  const { checks } = await doctor(env);
  expect(checks.webhooks).toEqual(ok('1 active, 0 failing, 0 off'));
  expect(await run('remove', '1')).toMatchObject([row]);
  expect(await run('list')).toEqual([]);
  expect([
    await run('test', '1'),
    await run('create', '--url', 'http://a.example', '--types', 'pets.added'),
    await run('create', '--url', url, '--types', 'pets.sold'),
  ]).toEqual([
    expect.stringContaining('There is no webhook 1.'),
    expect.stringContaining('url must be'),
    expect.stringContaining('types must be'),
  ]);
});

test.each([
  [['replay', '1'], "missing required argument 'position'"],
  [['replay', '1', 'x'], "'x' is invalid for argument 'position'"],
  [['replay', '1', '0x10'], 'It must be an int64 in decimal digits.'],
  [['replay', '1', '1.5'], 'It must be an int64 in decimal digits.'],
  [['replay', '1', '9'.repeat(19)], 'It must be an int64 in decimal digits.'],
  [['rotate'], "missing required argument 'id'"],
  [['test', 'one'], "'one' is invalid for argument 'id'"],
  [['test', '1', '40'], 'too many arguments'],
  [['list', 'one'], "'one' is invalid for argument 'id'"],
  [['create', '--types', 'pets.added'], "'--url <url>' not specified"],
  [['create', '--url', 'https://a.example'], "'--types <types>' not specified"],
  [['nope'], "unknown command 'nope'"],
])('webhooks %j is wrong usage', async (args, message) => {
  const { code, stderr } = await cli(['webhooks', ...args], database.env);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

// The embedded store has all tables, or does not exist.
const onServer = onPlainPostgres ? test : test.skip;
onServer('before its migrations, doctor says what to do', async () => {
  const { checks } = await doctor({ ...database.env, WEBHOOKS: 'true' });
  expect(checks.webhooks).toEqual({
    state: 'warning',
    found: expect.stringContaining('has not been migrated'),
    remedy: 'create the tables: `migrate`, or a start',
  });
});
