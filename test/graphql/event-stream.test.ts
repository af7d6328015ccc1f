import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  EventStream,
  heartbeatInterval,
} from '#engine/api/subscriptions/event-stream.js';
import {
  multipart,
  type StreamFormat,
  serverSentEvents,
} from '#engine/api/subscriptions/format.js';
import { expect, test } from '../support/jest.ts';

/** A stream in a bare server. */

/** Numbers up to a last one, as far as they are requested. */
async function* numbers(read: number[], last: number) {
  try {
    for (let id = 1; id <= last; id += 1) {
      read.push(id);
      yield { position: BigInt(id), items: [] };
    }
  } finally {
    read.push(-1);
  }
}

/** Sends a stream as the response to one request. @returns its text */
async function serve(
  format: StreamFormat,
  use: (stream: EventStream) => unknown = () => undefined,
  last = 10,
) {
  const read: number[] = [];
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const opened = new Promise<EventStream>((done) => {
    server.once('request', (_request, response) => {
      const stream = new EventStream(response, {
        format,
        start: 0n,
        batches: numbers(read, last),
        async *write({ position: id }) {
          yield Buffer.from(format.next(`{"data":${id}}`, id));
          if (id === 3n) stream.end(new Error('Enough.'));
          if (id === 3n) yield Buffer.from('more');
        },
        failureAsJson: (error) =>
          JSON.stringify([{ message: (error as Error).message }]),
      });
      response.writeHead(200, { 'content-type': format.mediaType });
      stream.body().pipe(response);
      done(stream);
    });
  });
  try {
    const { port } = server.address() as AddressInfo;
    const response = fetch(`http://127.0.0.1:${port}`);
    use(await opened);
    return await response
      .then((response) => response.text())
      .catch(() => 'cut');
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    await new Promise(setImmediate);
    // A generator that was never started has no end.
    expect(read.at(-1) ?? -1).toBe(-1);
  }
}

test('a stream sends server-sent events, then the reason of its end', async () => {
  const event = (data: string, id?: number) =>
    `event: next\n${id ? `id: ${id}\n` : ''}data: ${data}\n\n`;
  const results = [1, 2, 3].map((id) => event(`{"data":${id}}`, id)).join('');
  const end = `${event('{"errors":[{"message":"Enough."}]}')}event: complete\ndata:\n\n`;
  expect(await serve(serverSentEvents)).toBe(`id: 0\n\n${results}${end}`);
});

test('a stream sends parts of a multipart response, then the reason of its end', async () => {
  const part = (json: string) =>
    `\r\nContent-Type: application/json\r\n\r\n${json}\r\n--graphql`;
  const results = [1, 2, 3]
    .map((id) => part(`{"payload":{"data":${id}}}`))
    .join('');
  const end = `${part('{"payload":null,"errors":[{"message":"Enough."}]}')}--\r\n`;
  expect(await serve(multipart)).toBe(
    `\r\n--graphql${part('{}')}${results}${end}`,
  );
});

test('a stream that has failed waits for no result that is being made', async () => {
  let release = (): void => undefined;
  const made = new Promise<void>((done) => {
    release = done;
  });
  const text = await serve(serverSentEvents, (stream) => {
    stream.source.write = async function* () {
      stream.end(new Error('Enough.'));
      await made;
      yield Buffer.from('more');
    };
  });
  release();
  const failed = 'event: next\ndata: {"errors":[{"message":"Enough."}]}\n\n';
  expect(text).toBe(`id: 0\n\n${failed}event: complete\ndata:\n\n`);
});

test('a stream whose results end is complete', async () => {
  const results = 'id: 0\n\nevent: next\nid: 1\ndata: {"data":1}\n\n';
  expect(await serve(serverSentEvents, undefined, 1)).toBe(
    `${results}event: complete\ndata:\n\n`,
  );
});

test('a stream that is cut has no end', async () => {
  expect(await serve(serverSentEvents, (stream) => stream.cut())).toBe('cut');
});

test('a heartbeat is due before a proxy closes a connection that is idle for 15 s', () => {
  expect(heartbeatInterval).toBeLessThan(15_000);
});
