import { connect, type Socket } from 'node:net';
import type { Caller } from '#engine/call.js';
import { stockNames } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { requestText } from '../support/raw.ts';
import { rest } from '../support/rest.ts';
import { nodeForAll, storeForAll } from '../support/store.ts';

/** What one client takes does not keep others from being served. */

const store = storeForAll();
const narrow = nodeForAll(store, { MAX_CONNECTIONS: '4' });
const size = 128 * 1024 * 1024;
let greedy: Pick<Caller, 'id'> & { key: string };

beforeAll(async () => {
  greedy = await store.keys.issue({ name: 'greedy' });
  await stockNames(store.database, Array(100).fill('x'.repeat(200)));
});

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

function open(origin: string, localAddress = '127.0.0.1'): Socket {
  const port = Number(new URL(origin).port);
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

const budget = () => store.app.unread.budget;
const heldBy = (holder: number | string) => {
  const left = -budget().excess('nobody');
  return budget().excess(holder) + left;
};

/** Runs while a key has all that it may have of unread answers. */
async function whileFull(work: () => Promise<void>): Promise<void> {
  budget().add(greedy.id, size / 2);
  await work().finally(() => budget().add(greedy.id, -size / 2));
}

test('a key that leaves too many answers unread is refused, and others are served', () =>
  whileFull(async () => {
    const page = '/v1/pets?limit=100';
    expect((await rest(store, page, { key: greedy.key })).json).toEqual({
      code: 'SERVICE_UNAVAILABLE',
      message: 'Too many large answers are under way; try again shortly.',
      status: 503,
    });
    expect((await rest(store, page)).json).toHaveLength(100);
    expect((await rest(store, '/v1/pets?limit=1', greedy)).status).toBe(200);
    const contract = { path: '/v1/openapi.json' };
    expect((await send(store.origin, contract)).status).toBe(200);
  }));

test('its mutations are refused before they run, those of others run', () =>
  whileFull(async () => {
    const copies = Array.from({ length: 48 }, (_, n) => `a${n}: name`);
    const query = `mutation { createPet(input: { name: "Rex", categoryId: "1" }) { ${copies.join(' ')} } }`;
    const count = async () =>
      (await store.database.rows({ name: '', text: 'select from pet' }, []))
        .length;
    const before = await count();
    const refused = await graphqlText({ ...store, ...greedy }, { query });
    expect([refused.status, refused.errors?.[0]?.extensions.code]).toEqual([
      503,
      'SERVICE_UNAVAILABLE',
    ]);
    expect(await count()).toBe(before);
    expect((await graphqlText(store, { query })).status).toBe(200);
    expect(await count()).toBe(before + 1);
  }));

test('each answer that waits for another one counts with its bytes, until its client has left', async () => {
  const authorization = `Authorization: Bearer ${greedy.key}\r\n`;
  const stream = `${authorization}Accept: text/event-stream\r\n`;
  const text = (line: string, headers = '') =>
    `${requestText(line, headers)}`.replace(/Connection: close\r\n/, '');
  const socket = open(store.origin);
  socket.write(text('GET /v1/pets', stream));
  for (let n = 0; n < 3; n += 1)
    socket.write(text('GET /v1/pets?limit=1', authorization));
  socket.write(text('GET /v1/openapi.json'));
  const { text: pet } = await rest(store, '/v1/pets?limit=1');
  await eventually(async () => heldBy(greedy.id) >= 3 * pet.length);
  expect(heldBy(greedy.id)).toBe(3 * pet.length);
  await eventually(async () => heldBy('127.0.0.1') > 10_000);
  socket.destroy();
  await eventually(async () => heldBy(greedy.id) === 0);
  expect(heldBy('127.0.0.1')).toBe(0);
});

test('many connections of one network leave room for another one', async () => {
  const isServed = (socket: Socket) =>
    new Promise<boolean>((done) => {
      socket.write(requestText('GET /livez').toString().replace('close', 'x'));
      socket.once('data', () => done(true)).once('close', () => done(false));
    });
  const served = [];
  for (let n = 0; n < 4; n += 1)
    served.push(await isServed(open(narrow.origin)));
  expect(served).toEqual([true, true, false, false]);
  expect(await isServed(open(narrow.origin, '127.0.0.2'))).toBe(true);
});
