import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { creators } from '../support/apis.ts';
import { createOwnDatabase } from '../support/database.ts';
import { databaseForEach } from '../support/fixtures.ts';
import { expect, test } from '../support/jest.ts';
import {
  bootstrapKey,
  eventually,
  onPostgres,
  startServer,
} from '../support/process.ts';
import { exchange } from '../support/raw.ts';
import { rest } from '../support/rest.ts';

/**
 * The built program as its users start it. `test/deep/operations` has the other
 * tests of each behaviour.
 */

const database = databaseForEach(createOwnDatabase);
const shared = databaseForEach();

(onPostgres ? test.skip : test)(
  'the first start prints one key and three commands that work; a later start prints no key (skipped on PostgreSQL, where `keys` issues them)',
  async () => {
    const server = await startServer(database.env);
    await eventually(async () => server.output.stdout.includes('Try it:'));
    expect(new Set(server.output.stdout.match(/ask_\w+/g)).size).toBe(1);
    // Lines that a backslash continues are one command.
    const commands =
      server.output.stdout.match(/^ {2}curl (?:.*\\\n)*.*$/gm) ?? [];
    const outputs: unknown[] = [];
    for (const command of commands) {
      const { stdout } = await promisify(execFile)('bash', [
        '-c',
        command.replace('curl ', 'curl -s '),
      ]);
      outputs.push(JSON.parse(stdout));
    }
    expect(outputs).toEqual([
      [],
      { id: 1, name: 'Rex', categoryId: 5, status: 'available' },
      {
        data: {
          pets: [
            { id: '1', name: 'Rex', categoryId: '5', status: 'available' },
          ],
        },
      },
    ]);
    const [key = ''] = (await server.stop()).stdout.match(/ask_\w+/) ?? [];
    const later = await startServer(database.env);
    expect((await rest({ ...later, key }, '/v1/pets')).json).toEqual([
      outputs[1],
    ]);
    expect((await later.stop()).stdout).not.toContain('API key');
  },
);

test('a new process refuses a request of HTTP/1.1 without a host, before it has seen any', async () => {
  const server = await startServer({
    ...shared.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
  });
  const head = `Authorization: Bearer ${bootstrapKey}\r\nConnection: close\r\n\r\n`;
  const answers = [
    await exchange(server, `GET /v1/pets HTTP/1.1\r\n${head}`),
    await exchange(server, `GET /v1/pets HTTP/1.0\r\n${head}`),
  ];
  const message =
    'The request must have one Host header: a name or address, and a port.';
  expect(answers.flat().map(({ text }) => JSON.parse(text))).toEqual([
    { code: 'BAD_USER_INPUT', message, status: 400 },
    [],
  ]);
});

test('an acknowledged creation survives SIGKILL', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: bootstrapKey };
  const killed = await startServer(env);
  const created = await rest(killed, '/v1/pets', {
    method: 'POST',
    json: { name: 'Rex', categoryId: 5 },
  });
  expect(created.status).toBe(201);
  await killed.stop('SIGKILL');
  expect((await rest(await startServer(env), '/v1/pets')).json).toEqual([
    created.json,
  ]);
});

test('after SIGTERM each request of either API is answered or refused, and each acknowledged creation is kept', async () => {
  const env = { ...shared.env, BOOTSTRAP_API_KEY: bootstrapKey };
  const server = await startServer(env);
  const calls = Array.from({ length: 60 }, (_, number) =>
    creators[number % 2]?.create(server, {
      name: `Pet ${number}`,
      categoryId: 5,
    }),
  );
  await Promise.race(calls);
  const ended = server.stop('SIGTERM');
  const outcomes = await Promise.allSettled(calls);
  // No key is printed if one is configured.
  const drained = { code: 0, signal: null, stderr: '' };
  expect(await ended).toMatchObject({
    ...drained,
    stdout: expect.not.stringContaining('API key'),
  });
  const created = outcomes.flatMap((one) =>
    one.status === 'fulfilled' ? [one.value?.outcome] : [],
  );
  for (const pet of created) expect(pet).toHaveProperty('id');

  expect(
    (await rest(await startServer(env), '/v1/pets?limit=100')).json,
  ).toHaveLength(created.length);
});
