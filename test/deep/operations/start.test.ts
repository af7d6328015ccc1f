import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const shell = promisify(execFile);
const onEmbedded = onPostgres ? describe.skip : describe;

const database = databaseForEach(createOwnDatabase);

/** What is pasted: the commands of the welcome, lines continued with a backslash joined. */
function commands(text: string): string[] {
  return text.match(/^ {2}curl (?:.*\\\n)*.*$/gm) ?? [];
}

async function paste(command: string): Promise<any> {
  const { stdout } = await shell('bash', ['-c', command.replace('curl ', 'curl -s ')]);
  return JSON.parse(stdout);
}

/** Starts on an empty store and waits for the welcome, which follows the first answers. */
async function firstStart(): Promise<{ server: ServerProcess; keys: string[] }> {
  const server = await startServer(database.env);
  await eventually(async () => server.output.stdout.includes('Explore:'));
  return { server, keys: [...new Set(server.output.stdout.match(/ask_\w+/g))] };
}

onEmbedded('a first start (skipped on PostgreSQL, where keys are issued by the operator)', () => {
  test('prints one key and three commands that work as they are', async () => {
    const { server, keys } = await firstStart();
    expect(keys).toHaveLength(1);
    const [list, create, query, ...others] = commands(server.output.stdout);
    expect(others).toEqual([]);
    expect(await paste(list as string)).toEqual([]);
    const rex = await paste(create as string);
    expect(rex).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 5, status: 'available' });
    expect(await paste(list as string)).toEqual([rex]);
    expect(await paste(query as string)).toEqual({
      data: { pets: [{ id: `${rex.id}`, name: 'Rex', categoryId: '5', status: 'available' }] },
    });
  });

  test('is followed by others that print no key and still have the data', async () => {
    const first = await firstStart();
    const key = first.keys[0] as string;
    await first.server.stop();
    const second = await startServer(database.env);
    const created = await rest({ ...second, key }, '/v1/pets', {
      method: 'POST',
      json: { name: 'Rex', categoryId: 5 },
    });
    await second.stop();
    const third = await startServer(database.env);
    expect((await rest({ ...third, key }, '/v1/pets')).json).toEqual([created.json]);
    await third.stop();
    expect(second.output.stdout).not.toContain('API key');
    expect(third.output.stdout).not.toContain('API key');
  });

  test('prints no key when one is configured', async () => {
    const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: 'a-key-that-is-set-in-the-environment' });
    expect((await server.stop()).stdout).not.toContain('API key');
  });
});

test('a known key is valid as long as the configuration names it', async () => {
  const key = 'a-key-that-is-set-in-the-environment';
  const server = await startServer({ ...database.env, BOOTSTRAP_API_KEY: key });
  expect((await rest(server, '/v1/pets')).status).toBe(200);
  await server.stop();
  const without = await startServer(database.env);
  expect((await rest({ ...without, key }, '/v1/pets')).status).toBe(401);
});
