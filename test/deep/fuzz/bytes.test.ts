import { connect } from 'node:net';
import fc from 'fast-check';
import { expect, test } from '../../support/jest.ts';
import { responsesIn } from '../../support/raw.ts';
import { rest } from '../../support/rest.ts';
import { type Store, storeForAll } from '../../support/store.ts';
import { assertGraphQLAnswer, assertRestAnswer } from './answers.ts';
import { fuzz } from './fuzz.ts';

/** Bytes written to a connection. `KEY` in them becomes the key of the store. */
export type Bytes = Buffer;

const graphqlBody = '{"query":"{ pets { id } }"}';
const petBody = '{"name":"Rex","categoryId":9007199254740993}';
const head = (line: string, ...headers: string[]) =>
  [`${line} HTTP/1.1`, 'Host: localhost', 'Authorization: Bearer KEY', ...headers, '', ''].join('\r\n');
const json = (body: string) => ['Content-Type: application/json', `Content-Length: ${body.length}`];
const chunked = `5\r\n{"nam\r\n${(petBody.length - 5).toString(16)};x=y\r\n${petBody.slice(5)}\r\n0\r\nTrailer: x\r\n\r\n`;

const requests = [
  head('GET /v1/pets?limit=5'),
  head('GET /v1/pets/1'),
  head('GET /v1/store/orders'),
  head('POST /v1/pets', ...json(petBody)) + petBody,
  head('POST /v1/pets', 'Content-Type: application/json', 'Transfer-Encoding: chunked') + chunked,
  head('POST /v1/pets', ...json(petBody), 'Expect: 100-continue') + petBody,
  head('POST /graphql', ...json(graphqlBody)) + graphqlBody,
  head('OPTIONS *'),
  head('CONNECT localhost:80'),
  head('GET /v1/pets', 'Connection: Upgrade', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /v1/pets HTTP/1.0\r\n\r\n',
  'GET /v1/pets\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
].map((text) => Buffer.from(text, 'latin1'));

const noise = fc.oneof(
  fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom(
      ...[
        '\r\n',
        '\n',
        '\r',
        '\0',
        ' ',
        '\t',
        ':',
        '\r\n\r\n',
        'HTTP/1.1',
        'HTTP/9.9',
        'Content-Length: 5\r\n',
        '\xff\xfe',
      ],
      ...[
        'Content-Length: -1\r\n',
        'Transfer-Encoding: chunked\r\n',
        'Transfer-Encoding: x\r\n',
        'Host: b\r\n',
        ' folded\r\n',
      ],
      ...['ffffffffffffffff\r\n', `X: ${'x'.repeat(20_000)}\r\n`, 'GET / HTTP/1.1\r\n\r\n', '%', '?', '#', '//', '../'],
    )
    .map((text) => Buffer.from(text, 'latin1')),
);
const change = fc.record({
  at: fc.nat(1000),
  isBetweenLines: fc.boolean(),
  length: fc.oneof(fc.constant(0), fc.nat(10)),
  put: noise,
});
const changed = fc
  .tuple(fc.array(fc.constantFrom(...requests), { minLength: 1, maxLength: 3 }), fc.array(change, { maxLength: 2 }))
  .map(([pipeline, changes]) =>
    changes.reduce((now, { at, isBetweenLines, length, put }) => {
      const anywhere = at % (now.length + 1);
      const place = isBetweenLines ? now.indexOf('\r\n', anywhere) + 2 : anywhere;
      return Buffer.concat([now.subarray(0, place), put, now.subarray(place + length)]);
    }, Buffer.concat(pipeline)),
  );

export const bytes: fc.Arbitrary<Bytes> = fc.oneof(
  { weight: 9, arbitrary: changed },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 500 }).map((some) => Buffer.from(some)) },
);

// Ends the connection after all answers, unless what comes before has the service wait for more.
const farewell = Buffer.from('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');

/** Writes the bytes and holds whatever comes back against the contract. @returns the statuses */
export async function sendBytes(store: Store, some: Bytes): Promise<string[]> {
  const answer = await exchange(store, Buffer.from(some.toString('latin1').replaceAll('KEY', store.key), 'latin1'));
  const responses = responsesIn(answer).filter(({ status }) => status >= 200);
  for (const response of responses) {
    const isGraphQL = /"(?:data|errors)":/.test(response.text);
    if (isGraphQL) assertGraphQLAnswer(response);
    // Which of several requests it answers cannot be known: no operation is named, any failure is held against Error.
    else if (response.status >= 400) assertRestAnswer({ path: '/' }, response);
  }
  return responses.length === 0 ? ['closed'] : responses.map(({ status }) => `${status}`);
}

function exchange(store: Store, some: Buffer): Promise<Buffer> {
  const { hostname, port } = new URL(store.origin);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks)));
    // Nothing depends on when: the service answers or hangs up, either is checked.
    socket.setTimeout(50, () => socket.end());
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The service may hang up while bytes are still on their way to it.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.write(Buffer.concat([some, farewell]));
  });
}

const store = storeForAll({ REQUEST_TIMEOUT_MS: '3000' });

fuzz(() => store, {
  name: 'connections with random bytes',
  share: 0.1,
  request: bytes,
  send: sendBytes,
  show: (some) => JSON.stringify(some.toString('latin1')),
});

test('afterwards the service answers as ever', async () => {
  const { status, json } = await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
  expect([status, json.name]).toEqual([201, 'Rex']);
  expect((await rest(store, `/v1/pets?after=${json.id - 1}`)).json).toEqual([json]);
});
