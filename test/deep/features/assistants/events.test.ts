import {
  Client,
  fromJsonSchema,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { databaseForAll } from '../../../support/fixtures.ts';
import { afterEach, expect, test } from '../../../support/jest.ts';
import {
  bootstrapKey,
  eventually,
  killAll,
  type ServerProcess,
  startServer,
} from '../../../support/process.ts';

/** The official client polls events, also over a kill -9 of the service. */

const database = databaseForAll();
afterEach(killAll);

const start = () =>
  startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
    LOG_LEVEL: 'silent',
    MCP: 'true',
  });
const authorization = `Bearer ${bootstrapKey}`;
const headers = { authorization, 'content-type': 'application/json' };
const anything = fromJsonSchema<any>({ type: 'object' });

async function clientOf({ origin }: ServerProcess) {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: 'auto' } },
  );
  const url = new URL(`${origin}/mcp`);
  const requestInit = { headers: { authorization } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return client;
}

const writers = [0, 1, 2, 3, 4, 5, 6, 7];
const each = 50;

test('the official client gets each of 400 events once, in order, over a kill -9', async () => {
  let node = await start();
  let client = await clientOf(node);
  const { events } = await client.request({ method: 'events/list' }, anything);
  expect(events.map(({ name }: any) => name)).toContain('pets.added');
  const poll = (cursor: string | null) =>
    client.request(
      { method: 'events/poll', params: { name: 'pets.added', cursor } },
      anything,
    );
  const acknowledged: string[] = [];
  const write = async (writer: number) => {
    for (let at = 0; at < each; ) {
      const body = JSON.stringify({ name: `${writer} ${at}`, categoryId: 1 });
      const options = { method: 'POST', headers, body };
      try {
        const answer = await fetch(`${node.origin}/v1/pets`, options);
        acknowledged.push(`${((await answer.json()) as any).id}`);
        at += 1;
      } catch {
        // The service is dead.
        await new Promise((go) => setTimeout(go, 20));
      }
    }
  };
  let { cursor } = await poll(null);
  let isKilled = false;
  let isWritten = false;
  const seen: string[] = [];
  const written = Promise.all(writers.map(write)).then(() => {
    isWritten = true;
  });
  for (let isLast = false; !isLast; ) {
    if (!isKilled && seen.length > 150) {
      isKilled = true;
      await node.stop('SIGKILL');
      node = await start();
      client = await clientOf(node);
    }
    isLast = isWritten;
    const page = await poll(cursor);
    seen.push(...page.events.map(({ data }: any) => data.id));
    cursor = page.cursor;
    isLast &&= !page.hasMore;
  }
  await written;
  const inOrder = seen.toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
  expect(seen).toEqual(inOrder);
  expect(new Set(seen).size).toBe(seen.length);
  expect(acknowledged).toHaveLength(writers.length * each);
  expect(acknowledged.filter((id) => !seen.includes(id))).toEqual([]);
  expect(isKilled).toBe(true);
});

test('the official client follows a stream of events', async () => {
  const node = await start();
  const client = await clientOf(node);
  const told: any[] = [];
  client.fallbackNotificationHandler = async ({ method, params }) => {
    told.push({ method, params });
  };
  const leaving = new AbortController();
  const { signal } = leaving;
  const ended = client
    .request(
      { method: 'events/stream', params: { name: 'pets.added' } },
      anything,
      { signal, timeout: 2 ** 31 - 1 },
    )
    .catch(() => 'ended');
  await eventually(async () => told.length === 1);
  const body = JSON.stringify({ name: 'Rex', categoryId: 1 });
  for (let count = 0; count < 3; count += 1)
    await fetch(`${node.origin}/v1/pets`, { method: 'POST', headers, body });
  await eventually(async () => told.length === 4);
  const [active, ...events] = told;
  expect(active.method).toBe('notifications/events/active');
  expect(events.map(({ params }) => params.cursor)).toEqual(
    events.map(({ params }) => params.data.id),
  );
  leaving.abort();
  expect(await ended).toBe('ended');
});
