import { randomUUID } from 'node:crypto';
import { type Created, creators } from '../../support/creations.ts';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { startWorkers } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
const rex = { name: 'Rex', categoryId: 5 };

async function names(server: Pick<ServerProcess, 'origin' | 'key'>): Promise<string[]> {
  const all: string[] = [];
  for (let after = ''; ; ) {
    const { json } = await rest(server, `/v1/pets?limit=100${after}`);
    all.push(...json.map(({ name }: { name: string }) => name));
    if (json.length < 100) return all;
    after = `&after=${json.at(-1).id}`;
  }
}

test('a server that is killed under load has created once what its clients repeat at the next one', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: key };
  let server: ServerProcess = await startServer(env);
  let isOver = false;
  let number = 0;
  const created: string[] = [];
  // Sends each until it is acknowledged, as clients do that have a key.
  const client = async (at: number) => {
    const { create } = creators[at % 2] as (typeof creators)[number];
    while (!isOver) {
      const name = `pet ${++number}`;
      const once = randomUUID();
      await eventually(async () => {
        const { outcome } = await create(server, { ...rex, name }, { once });
        return outcome.name === name;
      });
      created.push(name);
    }
  };
  const clients = Array.from({ length: 16 }, (_, at) => client(at));
  for (let round = 1; round <= 2; round += 1) {
    const before = created.length;
    await eventually(async () => created.length > before + 100);
    await server.stop('SIGKILL');
    server = await startServer(env);
  }
  isOver = true;
  await Promise.all(clients);
  expect((await names(server)).sort()).toEqual(created.sort());
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});

test('of many requests to several workers at the same time one creates', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
  const client = { origin: server.origin, key };
  const once = randomUUID();
  const answers = Array.from({ length: 64 }, (_, at) => creators[at % 2]?.create(client, rex, { once }));
  const created = (await Promise.all(answers)) as Created[];
  expect(new Set(created.map(({ outcome }) => outcome.id)).size).toBe(1);
  expect(await names(client)).toEqual(['Rex']);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
