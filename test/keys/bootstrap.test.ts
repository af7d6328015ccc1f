import { connect } from 'node:net';
import { faces } from '../support/faces.ts';
import { callWith, guess, judged, withClock } from '../support/guesses.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';

/** The key from the configuration, which an operator made up: of all keys it alone may be guessable. */
const store = storeForAll();

const key = 'bootstrap-0123456789abcdef0123456789';
const env = { AUTH_FAILURES_PER_MINUTE: '5', BOOTSTRAP_API_KEY: key, TRUST_PROXY: '127.0.0.1' };
const from = (address: string) => ({ 'x-forwarded-for': address });
const guessed = (at: number) => `bootstrap-0123456789abcdef0123456${100 + at}`;
async function guessIt(node: ServiceNode, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < count; at += 1) statuses.push((await callWith(node, guessed(at), from('192.0.2.1'))).status);
  return statuses;
}

test('the configured key opens both faces while it is configured, and its last use does not wear off', async () => {
  await onNode(store, env, (node) =>
    withClock(async (setTo) => {
      for (const later of [0, 900, 59_000, 600_000]) {
        setTo(later);
        for (const face of faces) expect(await face.list({ ...store, ...node }, {}, key)).toEqual({ data: [] });
      }
    }),
  );
  expect((await callWith(store, key)).status).toBe(401);
});

describe('the bootstrap key is limited like the others', () => {
  test('guesses at it are 429 over the limit, and so is the right one from an address that never used it', () =>
    onNode(store, env, async (node) => {
      expect(await guessIt(node, 8)).toEqual(judged(5, 8));
      const { status, headers, text } = await callWith(node, key, from('192.0.2.1'));
      const message = 'Too many requests with a wrong API key came from this address.';
      expect([status, JSON.parse(text)]).toEqual([429, { code: 'TOO_MANY_REQUESTS', status: 429, message }]);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      // Elsewhere nobody has guessed.
      expect((await callWith(node, key, from('192.0.2.2'))).status).toBe(200);
    }));

  test('wrong keys of every other kind count with them; from an address that used it before, it is 200', () =>
    onNode(store, env, async (node) => {
      expect((await callWith(node, key, from('192.0.2.1'))).status).toBe(200);
      expect(await guess(node, 3, () => from('192.0.2.1'))).toEqual(judged(3, 3));
      expect(await guessIt(node, 4)).toEqual(judged(2, 4));
      expect((await callWith(node, key, from('192.0.2.1'))).status).toBe(200);
    }));

  test('what is too short to be it is no guess: it is not counted, and always 401', () =>
    onNode(store, env, async (node) => {
      for (let at = 0; at < 10; at += 1) expect((await callWith(node, key.slice(0, 31))).status).toBe(401);
      expect(await guess(node, 6)).toEqual(judged(5, 6));
      expect((await callWith(node, key.slice(0, 31))).status).toBe(401);
    }));

  test('guesses that come in one piece are judged together, and every later one is refused', () =>
    onNode(store, env, async (node) => {
      const requests = Array.from({ length: 100 }, (_, at) => {
        const last = at === 99 ? 'Connection: close\r\n' : '';
        return `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${last}Authorization: Bearer ${guessed(at)}\r\n\r\n`;
      });
      const socket = connect(Number(new URL(node.origin).port), '127.0.0.1').setEncoding('latin1');
      socket.write(requests.join(''));
      let answers = '';
      for await (const text of socket) answers += text;
      expect(answers.match(/(?<=HTTP\/1\.1 )\d+/g)?.map(Number)).toEqual(judged(100, 100));
      expect((await callWith(node, guessed(100))).status).toBe(429);
    }));
});
