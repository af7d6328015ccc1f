import { Receiver, verified } from '../../../features/webhooks/receiver.ts';
import { databaseForAll } from '../../../support/fixtures.ts';
import { afterAll, afterEach, expect, test } from '../../../support/jest.ts';
import {
  bootstrapKey,
  eventually,
  killAll,
  onPostgres,
  type ServerProcess,
  startServer,
} from '../../../support/process.ts';

const database = databaseForAll();
afterEach(killAll);
const receiver = new Receiver();
afterAll(() => receiver.close());

const start = () =>
  startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
    LOG_LEVEL: 'silent',
    WEBHOOKS: 'true',
    WEBHOOKS_LOCAL: 'true',
  });
const headers = {
  authorization: `Bearer ${bootstrapKey}`,
  'content-type': 'application/json',
};
const post = async ({ origin }: ServerProcess, path: string, body: object) => {
  const json = JSON.stringify(body);
  const options = { method: 'POST', headers, body: json };
  return (await fetch(origin + path, options)).json() as Promise<any>;
};

/** Acknowledged writes at which a node, or the endpoint, ends. */
const kills = [80, 200, 320];
const restart = 260;
const writes = 400;

test('every acknowledged write is sent at least once, in order, over kill -9 of nodes and a restart of the endpoint', async () => {
  await receiver.open();
  // An embedded store has one process.
  const nodes = [await start()];
  if (onPostgres) nodes.push(await start());
  const [first] = nodes as [ServerProcess];
  const types = ['pets.added'];
  const made = await post(first, '/v1/webhooks', { url: receiver.url, types });
  const acknowledged: number[] = [];
  const disasters: Array<Promise<unknown>> = [];
  const killed: number[] = [];
  const kill = async () => {
    const at = killed.length % nodes.length;
    killed.push(at);
    await nodes[at]?.stop('SIGKILL');
    nodes[at] = await start();
  };
  const write = async (writer: number) => {
    for (let at = 0; acknowledged.length < writes; at += 1) {
      const node = nodes[(writer + at) % nodes.length] as ServerProcess;
      const name = `${writer} ${at}`;
      const pet = { name, categoryId: 1 };
      const { id } = await post(node, '/v1/pets', pet).catch(() => ({}));
      // The node is dead.
      if (id === undefined) await new Promise((go) => setTimeout(go, 20));
      else acknowledged.push(id);
      if (acknowledged.length === kills[killed.length]) disasters.push(kill());
      if (acknowledged.length === restart && disasters.length === 2)
        disasters.push(receiver.close().then(() => receiver.open()));
    }
  };
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(write));
  await Promise.all(disasters);
  const sent = () =>
    new Set(receiver.messages.map(({ id }) => Number(id.slice(5))));
  await eventually(async () => acknowledged.every((id) => sent().has(id)));
  const inOrder = [...sent()];
  expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b));
  for (const message of receiver.messages) verified(made.secret, message);
  const stored = new Set<number>();
  for (let hasNext = true; hasNext; ) {
    const after = [...stored].at(-1) ?? 0;
    const path = `/v1/pets?limit=100&after=${after}`;
    const page = await fetch(`${nodes[0]?.origin}${path}`, { headers });
    const pets = (await page.json()) as Array<{ id: number }>;
    for (const { id } of pets) stored.add(id);
    hasNext = pets.length > 0;
  }
  expect(inOrder.filter((id) => !stored.has(id))).toEqual([]);
  expect(killed).toHaveLength(kills.length);
});
