import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { stockNames } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { nodeForAll, storeForAll } from '../../support/store.ts';

/** Many large bodies or answers at a time, each of which is allowed; on a node with a low limit for bodies. */

const store = storeForAll();
const node = nodeForAll(store, {
  BODY_LIMIT_BYTES: '100000',
  DATABASE_STATEMENT_TIMEOUT_MS: '60000',
  // Until the last of many bodies has begun, on a busy machine, too.
  REQUEST_TIMEOUT_MS: '300000',
});
const sockets: Socket[] = [];
const leave = () => sockets.splice(0).forEach((socket) => void socket.destroy());
afterEach(leave);

const refused = (what: string) => ({
  code: 'SERVICE_UNAVAILABLE',
  message: `Too many large ${what} are under way; try again shortly.`,
  status: 503,
});

/** A connection whose client reads no more than it is told to. */
function open(request: string, body = ''): Socket {
  const socket = connect(Number(new URL(node.origin).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`${request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${node.key}\r\n${body}`);
  sockets.push(socket);
  return socket;
}

/** The status of an answer of which only the beginning is read. */
async function status(socket: Socket): Promise<number> {
  await once(socket, 'readable');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(`${socket.read(12)}`)?.[1]);
}

const rex = '{"name":"Rex","categoryId":1}';
const largeBody = rex.padEnd(100_000);

/** A creation whose body is large, and lacks its last byte. The server has begun to read it. */
async function begin(): Promise<Socket> {
  const type = 'Content-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n';
  const socket = open('POST /v1/pets', type);
  expect(await status(socket)).toBe(100);
  socket.write(largeBody.slice(1));
  return socket;
}

const createLarge = () => rest(node, '/v1/pets', { method: 'POST', body: largeBody });

test.each(['finish', 'leave'])(
  'large bodies beyond 64 times the limit are refused until others %s; small ones are not',
  async (end) => {
    const begun: Socket[] = [];
    while (begun.length < 64) begun.push(await begin());

    const answer = await createLarge();
    expect([answer.json, answer.headers['retry-after']]).toEqual([refused('bodies'), '1']);
    const query = `{ __typename } #${'x'.repeat(80_000)}`;
    const { errors, status: code, headers } = await graphqlText(node, { query });
    const { message, ...said } = refused('bodies');
    expect([code, errors]).toEqual([503, [{ message, extensions: expect.objectContaining(said) }]]);
    expect(headers['retry-after']).toBe('1');

    const body = rex.padEnd(60_000);
    expect(await rest(node, '/v1/pets', { method: 'POST', body })).toMatchObject({ status: 201 });

    if (end === 'leave') leave();
    else for (const socket of begun) socket.write(' ');
    await eventually(async () => (await createLarge()).status === 201);
    const again = await Promise.all(Array.from({ length: 32 }, createLarge));
    expect(again.map((one) => one.status)).toEqual(Array(32).fill(201));
  },
);

test('many small creations at a time in chunks, of unknown size, are no large bodies', async () => {
  const type = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
  const begun = Array.from({ length: 150 }, () => {
    const socket = open('POST /v1/pets', type);
    socket.write(`${rex.length.toString(16)}\r\n${rex}\r\n`);
    return socket;
  });
  for (const socket of begun) socket.write('0\r\n\r\n');
  expect(new Set(await Promise.all(begun.map(status)))).toEqual(new Set([201]));
});

test('large answers that clients do not read are bounded; small ones, and creations, are not', async () => {
  const [first = ''] = await stockNames(store.database, Array(100).fill('\u0001'.repeat(1000)));
  // 24 MB: far more than fits into the buffers between the two.
  const copies = Array.from({ length: 40 }, (_, n) => `a${n}: name`).join(' ');
  const query = `{ pets(limit: 100, after: "${BigInt(first) - 1n}") { ${copies} } }`;
  const body = JSON.stringify({ query });
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const statuses = await Promise.all(Array.from({ length: 8 }, () => status(open('POST /graphql', type + body))));
  expect(new Set(statuses)).toEqual(new Set([200, 503]));

  const answer = await graphqlText(node, { query });
  expect([answer.status, answer.headers['retry-after'], answer.errors?.[0]?.message]).toEqual([
    503,
    '1',
    refused('answers').message,
  ]);
  expect(await rest(node, '/v1/pets?limit=1')).toMatchObject({ status: 200 });
  expect(await rest(node, '/v1/pets', { method: 'POST', body: rex })).toMatchObject({ status: 201 });

  leave();
  await eventually(async () => (await graphqlText(node, { query })).status === 200);
});
