import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { stockNames } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { nodeForAll, storeForAll } from '../../support/store.ts';

/**
 * Many concurrent large bodies or responses, each within its limit, on a node
 * with a low limit for bodies.
 */

const store = storeForAll();
const node = nodeForAll(store, {
  BODY_LIMIT_BYTES: '100000',
  DATABASE_STATEMENT_TIMEOUT_MS: '60000',
  // On a busy machine the last of many bodies begins late.
  REQUEST_TIMEOUT_MS: '300000',
});
const sockets: Socket[] = [];
const leave = () =>
  sockets.splice(0).forEach((socket) => void socket.destroy());
afterEach(leave);

const refused = (what: string) => ({
  code: 'SERVICE_UNAVAILABLE',
  message: `Too many large ${what} are under way; try again shortly.`,
  status: 503,
});

/** Opens a connection whose client reads only on demand. */
function open(request: string, body = ''): Socket {
  const socket = connect(Number(new URL(node.origin).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    `${request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${node.key}\r\n${body}`,
  );
  sockets.push(socket);
  return socket;
}

/** Reads the status of a response, and not the rest. */
async function status(socket: Socket): Promise<number> {
  await once(socket, 'readable');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(`${socket.read(12)}`)?.[1]);
}

const rex = '{"name":"Rex","categoryId":1}';
const largeBody = rex.padEnd(100_000);

/**
 * Sends a creation whose large body lacks its last byte. The server reads it
 * soon.
 */
async function begin(): Promise<Socket> {
  const type =
    'Content-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n';
  const socket = open('POST /v1/pets', type);
  expect(await status(socket)).toBe(100);
  // The rest of the 100.
  socket.read();
  socket.write(largeBody.slice(0, -1));
  return socket;
}

const large = { method: 'POST', body: largeBody };
const createLarge = () => rest(node, '/v1/pets', large);

test.each(['finish', 'leave'])(
  'a key has large bodies of 32 times the limit; more are refused until others %s, small ones and those of another key are not',
  async (end) => {
    const begun: Socket[] = [];
    while (begun.length < 33) begun.push(await begin());
    // Whichever arrives last is refused: then 32 count.
    expect(await Promise.race(begun.map(status))).toBe(503);
    const response = await createLarge();
    expect([response.json, response.headers['retry-after']]).toEqual([
      refused('bodies'),
      '1',
    ]);
    const query = `{ __typename } #${'x'.repeat(80_000)}`;
    const {
      errors,
      status: code,
      headers,
    } = await graphqlText(node, { query });
    const { message, ...expected } = refused('bodies');
    expect([code, errors]).toEqual([
      503,
      [{ message, extensions: expect.objectContaining(expected) }],
    ]);
    expect(headers['retry-after']).toBe('1');

    const { key } = await store.keys.issue({ name: 'other' });
    expect(await rest(node, '/v1/pets', { ...large, key })).toMatchObject({
      status: 201,
    });
    const body = rex.padEnd(60_000);
    expect(
      await rest(node, '/v1/pets', { method: 'POST', body }),
    ).toMatchObject({ status: 201 });

    if (end === 'leave') leave();
    else for (const socket of begun) socket.write(' ');
    await eventually(async () => {
      const again = await Promise.all(Array.from({ length: 32 }, createLarge));
      return again.every(({ status }) => status === 201);
    });
  },
);

test('many concurrent small creations in chunks, of unknown size, do not count as large bodies', async () => {
  const type =
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
  const begun = Array.from({ length: 150 }, () => {
    const socket = open('POST /v1/pets', type);
    socket.write(`${rex.length.toString(16)}\r\n${rex}\r\n`);
    return socket;
  });
  for (const socket of begun) socket.write('0\r\n\r\n');
  expect(new Set(await Promise.all(begun.map(status)))).toEqual(new Set([201]));
});

test('large responses that clients do not read are bounded; small responses and creations are not', async () => {
  const [first = ''] = await stockNames(
    store.database,
    Array(100).fill('\u0001'.repeat(1000)),
  );
  // 24 MB: far more than the buffers between client and server hold.
  const copies = Array.from({ length: 40 }, (_, n) => `a${n}: name`).join(' ');
  const query = `{ pets(limit: 100, after: "${BigInt(first) - 1n}") { ${copies} } }`;
  const body = JSON.stringify({ query });
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const statuses = await Promise.all(
    Array.from({ length: 8 }, () => status(open('POST /graphql', type + body))),
  );
  expect(new Set(statuses)).toEqual(new Set([200, 503]));

  const response = await graphqlText(node, { query });
  expect([
    response.status,
    response.headers['retry-after'],
    response.errors?.[0]?.message,
  ]).toEqual([503, '1', refused('answers').message]);
  expect(await rest(node, '/v1/pets?limit=1')).toMatchObject({ status: 200 });
  expect(
    await rest(node, '/v1/pets', { method: 'POST', body: rex }),
  ).toMatchObject({ status: 201 });

  leave();
  await eventually(
    async () => (await graphqlText(node, { query })).status === 200,
  );
});
