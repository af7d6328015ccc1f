import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { creators } from '../support/creations.ts';
import { createOwnDatabase } from '../support/database.ts';
import { databaseForEach } from '../support/each.ts';
import { expect, test } from '../support/jest.ts';
import { bootstrapKey, eventually, onPostgres, startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

/** The built program as its users start it. `test/deep/operations` has the rest of each story. */

const database = databaseForEach(createOwnDatabase);
const shared = databaseForEach();

(onPostgres ? test.skip : test)(
  'a first start prints one key and three commands that work, and a later one no key (a PostgreSQL gets its keys from `keys`)',
  async () => {
    const server = await startServer(database.env);
    await eventually(async () => server.output.stdout.includes('Explore:'));
    expect(new Set(server.output.stdout.match(/ask_\w+/g)).size).toBe(1);
    // Lines that a backslash continues are one command.
    const commands = server.output.stdout.match(/^ {2}curl (?:.*\\\n)*.*$/gm) ?? [];
    const answers: unknown[] = [];
    for (const command of commands) {
      const { stdout } = await promisify(execFile)('bash', ['-c', command.replace('curl ', 'curl -s ')]);
      answers.push(JSON.parse(stdout));
    }
    expect(answers).toEqual([
      [],
      { id: 1, name: 'Rex', categoryId: 5, status: 'available' },
      { data: { pets: [{ id: '1', name: 'Rex', categoryId: '5', status: 'available' }] } },
    ]);
    const [key = ''] = (await server.stop()).stdout.match(/ask_\w+/) ?? [];
    const later = await startServer(database.env);
    expect((await rest({ ...later, key }, '/v1/pets')).json).toEqual([answers[1]]);
    expect((await later.stop()).stdout).not.toContain('API key');
  },
);

test('an acknowledged creation survives SIGKILL', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: bootstrapKey };
  const killed = await startServer(env);
  const created = await rest(killed, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } });
  expect(created.status).toBe(201);
  await killed.stop('SIGKILL');
  expect((await rest(await startServer(env), '/v1/pets')).json).toEqual([created.json]);
});

test('after SIGTERM each request of either face is answered or refused, and each acknowledged creation is kept', async () => {
  const env = { ...shared.env, BOOTSTRAP_API_KEY: bootstrapKey };
  const server = await startServer(env);
  const calls = Array.from({ length: 60 }, (_, number) =>
    creators[number % 2]?.create(server, { name: `Pet ${number}`, categoryId: 5 }),
  );
  await Promise.race(calls);
  const ended = server.stop('SIGTERM');
  const outcomes = await Promise.allSettled(calls);
  // And no key is printed where one is configured.
  const drained = { code: 0, signal: null, stderr: '' };
  expect(await ended).toMatchObject({ ...drained, stdout: expect.not.stringContaining('API key') });
  const answers = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value?.outcome] : []));
  for (const answer of answers) expect(answer).toHaveProperty('id');

  expect((await rest(await startServer(env), '/v1/pets?limit=100')).json).toHaveLength(answers.length);
});
