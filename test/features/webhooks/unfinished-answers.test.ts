import { Courier } from '#engine/features/webhooks/post.js';
import {
  afterAll,
  beforeAll,
  beforeEach,
  expect,
  test,
} from '../../support/jest.ts';
import { Receiver } from './receiver.ts';

const receiver = new Receiver();
beforeAll(() => receiver.open());
beforeEach(() => receiver.reset());
afterAll(() => receiver.close());

/** @returns the failure of a post that is answered by these bytes */
async function failureAfter(answer: string, after: (all: Courier) => void) {
  const courier = new Courier(true);
  receiver.answer = ({ socket }) => socket?.write(answer, () => after(courier));
  const endpoint = { url: receiver.url, secrets: [], subscription: null };
  const message = { id: 'id', body: {} };
  return courier.post(endpoint, message).catch((error) => error.message);
}

const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket';

test('an endpoint that switches protocols has not answered', async () => {
  const answer = `HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n\r\n`;
  const failure = await failureAfter(answer, () => undefined);
  expect(failure).toBe('It closed the connection without an answer.');
});

test.each([
  ['nothing', ''],
  ['that it continues', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['that it processes', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['hints', 'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n'],
  ['headers without an end', 'HTTP/1.1 200 OK\r\nX-A: b\r\n'],
  ['a part of a body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'],
  ['a part of chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
])('a post ends at shutdown though its endpoint says %s', async (_, answer) => {
  const close = (courier: Courier) => setImmediate(() => courier.close());
  expect(await failureAfter(answer, close)).toMatch(/abort|hang up/);
});

test.each([
  ['at once', ''],
  ['after hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['in its headers', 'HTTP/1.1 200 OK\r\nX-A: b\r\n'],
  ['in its body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'],
])('a post ends when its endpoint closes %s', async (_, answer) => {
  const close = () => receiver.cut();
  expect(await failureAfter(answer, close)).toMatch(/hang up|aborted|ECONN/);
});
