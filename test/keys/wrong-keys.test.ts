// runs: embedded

import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { createSecret } from '#engine/access/keys/secret.js';
import { apis } from '../support/apis.ts';
import { readsOf, together } from '../support/database-access.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';
import { callWith, guess, judged, withClock } from '../support/wrong-keys.ts';

/** Wrong keys are limited by address, and do not lock out other clients. */

const store = storeForAll({}, () => callWith(store, store.key));

const withLimit = (
  env: Record<string, string>,
  work: (node: ServiceNode) => Promise<void>,
) => onNode(store, { AUTH_FAILURES_PER_MINUTE: '5', ...env }, work);
const onLimited = (work: (node: ServiceNode) => Promise<void>) =>
  withLimit({}, work);
const statusesOf = (responses: Array<{ status: number }>) =>
  responses.map(({ status }) => status);
const from = (address: string) => ({ 'x-forwarded-for': address });

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const another = (character = '') =>
  digits[(digits.indexOf(character) + 1) % digits.length];

/**
 * Texts that cannot be keys: one with each kind of typing error, and others.
 */
function wrongShapes(): string[] {
  const secret = createSecret();
  const swapAt = [...secret].findIndex(
    (character, at) => at > 4 && character !== secret[at + 1],
  );
  return [
    ...[
      'x',
      'sk_live_0123456789abcdef',
      secret.slice(0, -1),
      `${secret.slice(0, -1)}-`,
      `${secret}0`,
    ],
    `ask_${another(secret[4])}${secret.slice(5)}`,
    secret.slice(0, -1) + another(secret.at(-1)),
    secret.replace('ask_', 'ast_'),
    secret.slice(0, swapAt) +
      secret[swapAt + 1] +
      secret[swapAt] +
      secret.slice(swapAt + 2),
  ];
}

const lookUps = (work: () => Promise<unknown>) =>
  readsOf('api_key', store.database, work);

describe('wrong keys from one address', () => {
  test('are 429 with Retry-After from the limit on, for both APIs and unknown paths, without a look-up', () =>
    onLimited(async (node) => {
      expect(await guess(node, 7)).toEqual(judged(5, 7));
      const count = await lookUps(async () => {
        for (const [method, path] of [
          ['GET', '/v1/pets'],
          ['POST', '/graphql'],
          ['GET', '/nothing'],
          ['GET', '/%'],
        ] as const) {
          const headers = { authorization: `Bearer ${createSecret()}` };
          const response = await send(node.origin, { method, path, headers });
          expect(response.status).toBe(429);
          expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
          expect(Number(response.headers['retry-after'])).toBeLessThanOrEqual(
            60,
          );
          const body = JSON.parse(response.text);
          expect(body.errors?.[0].extensions ?? body).toMatchObject({
            code: 'TOO_MANY_REQUESTS',
            status: 429,
          });
        }
      });
      expect(count).toBe(0);
    }));

  test('are counted; requests without a key or with one of the wrong shape are not, and need no look-up', () =>
    onLimited(async (node) => {
      const shapes = wrongShapes();
      const tryAll = async () => {
        for (const key of [null, ...shapes, ...shapes])
          expect((await callWith(node, key)).status).toBe(401);
        expect(
          (await callWith(node, null, { authorization: 'Basic eDp4' })).status,
        ).toBe(401);
      };
      expect(await lookUps(tryAll)).toBe(0);
      expect(await guess(node, 7)).toEqual(judged(5, 7));
      expect(await lookUps(tryAll)).toBe(0);
    }));

  test('are not limited when the limit is 0', () =>
    withLimit({ AUTH_FAILURES_PER_MINUTE: '0' }, async (node) =>
      expect(await guess(node, 150)).toEqual(judged(150, 150)),
    ));
});

test.each([
  ['of the wrong shape', () => 'x'],
  ['of the right shape', createSecret],
])(
  '100 anonymous requests with keys %s do not lock out a key that is in use behind their address',
  (_what, wrong) =>
    withLimit({ AUTH_FAILURES_PER_MINUTE: '100' }, (node) =>
      withClock(async (setTo) => {
        const inUse = async (expected: number) => {
          const call = async () =>
            expect((await callWith(node, store.key)).status).toBe(200);
          expect(await lookUps(call)).toBe(expected);
        };
        await inUse(1);
        for (let at = 0; at < 100; at += 1)
          expect((await callWith(node, wrong())).status).toBe(401);
        await inUse(0);
        // A key that the node has never seen is refused at an address with too
        // many guesses.
        const { key } = await store.keys.issue({ name: 'late' });
        expect((await callWith(node, key)).status).toBe(
          wrong === createSecret ? 429 : 200,
        );
        // The look-up of the used key has expired: it is repeated, regardless
        // of the guesses.
        for (const later of [901, 1802, 30_000]) {
          setTo(later);
          await inUse(1);
        }
      }),
    ),
);

describe('a wrong key that is repeated', () => {
  test('is looked up once in ten seconds, and counted once', () =>
    onLimited((node) =>
      withClock(async (setTo) => {
        const wrong = createSecret();
        const repeat = () =>
          lookUps(async () => {
            for (let at = 0; at < 20; at += 1)
              expect((await callWith(node, wrong)).status).toBe(401);
          });
        expect(await repeat()).toBe(1);
        setTo(9999);
        expect(await repeat()).toBe(0);
        setTo(10_001);
        expect(await repeat()).toBe(1);
        expect(await guess(node, 4)).toEqual(judged(3, 4));
        expect(await repeat()).toBe(0);
      }),
    ));

  test('because it was revoked is counted once for any number of parallel requests, and locks out no others', async () => {
    const revoked = await store.keys.issue({ name: 'revoked' });
    const other = await store.keys.issue({ name: 'other' });
    await onLimited(async (node) => {
      expect((await callWith(node, revoked.key)).status).toBe(200);
      await store.keys.revoke(revoked.id);
      await eventually(
        async () => (await callWith(node, revoked.key)).status === 401,
      );
      await withClock(async (setTo) => {
        // Its client continues, with a few connections, and the node forgets
        // the key between the rounds.
        for (const later of [0, 15_000, 30_000]) {
          setTo(later);
          const responses = await together(node, store.database, 20, () =>
            callWith(node, revoked.key),
          );
          expect(statusesOf(responses)).toEqual(judged(20, 20));
        }
        expect((await callWith(node, other.key)).status).toBe(200);
        // The rounds are more than ten seconds apart, so each has counted once.
        expect(await guess(node, 5)).toEqual(judged(3, 5));
      });
    });
  });
});

test('valid keys that the node has not seen yet are accepted in parallel', async () => {
  const keys = await Promise.all(
    Array.from({ length: 30 }, (_, at) =>
      store.keys.issue({ name: `key ${at}` }),
    ),
  );
  await onLimited(async (node) => {
    const responses = await Promise.all(
      keys.map(({ key }) => callWith(node, key)),
    );
    expect(new Set(statusesOf(responses))).toEqual(new Set([200]));
  });
});

describe('the address that counts', () => {
  test.each([{}, { TRUST_PROXY: '203.0.113.9' }] as Array<
    Record<string, string>
  >)('is that of the connection, regardless of headers, with %j', (env) =>
    withLimit(env, async (node) => {
      const names = [
        'x-forwarded-for',
        'x-real-ip',
        'x-client-ip',
        'true-client-ip',
      ];
      const claims = (at: number) => ({
        ...Object.fromEntries(names.map((name) => [name, `192.0.2.${at}`])),
        forwarded: `for=192.0.2.${at}`,
      });
      expect(await guess(node, 6, claims)).toEqual(judged(5, 6));
    }),
  );

  test.each([
    [
      'the one that the proxy added, not those that the client wrote before it',
      ['198.51.100.1, 192.0.2.1', '198.51.100.2, 192.0.2.1'],
      ['192.0.2.2'],
    ],
    [
      'one for an IPv6 network of 64 bits, because one client has all of it',
      [
        '2001:db8:0:1::1',
        '2001:db8:0:1:ffff:ffff:ffff:ffff',
        '2001:db8::1:0:0:0:2',
      ],
      ['2001:db8:0:2::1', '2001:db8::1', '::1', '192.0.2.1'],
    ],
    [
      'the whole IPv4 address, also in its IPv6 form',
      ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:c000:0201'],
      ['::ffff:192.0.2.2'],
    ],
    [
      'without its port, whatever quotes the client wrote before it',
      [
        '192.0.2.1:1',
        '", 192.0.2.1:2',
        'a, "b, 192.0.2.1:3',
        '"\\", 192.0.2.1:4',
        '"a, b", 192.0.2.1:5',
        '\\", "192.0.2.1:6"',
      ],
      ['", 192.0.2.2:1'],
    ],
  ])('behind one proxy is %s', (_what, same, strangers) =>
    withLimit({ TRUST_PROXY: '1' }, async (node) => {
      expect(
        await guess(node, 6, (at) => from(same[at % same.length] as string)),
      ).toEqual(judged(5, 6));
      for (const stranger of strangers)
        expect(await guess(node, 1, () => from(stranger))).toEqual([401]);
    }),
  );

  // Proxies write X-Forwarded-* and pass on all other headers: a client can
  // forge RFC 7239's Forwarded.
  test.each(['1', '127.0.0.1'])(
    'is never that of Forwarded, with TRUST_PROXY=%s',
    async (TRUST_PROXY) => {
      const { key } = await store.keys.issue({ name: 'never seen before' });
      for (const claim of [
        (at: number) => `for=198.51.100.${at}`,
        () => 'for=203.0.113.7',
        () => '"',
      ]) {
        await withLimit({ TRUST_PROXY }, async (node) => {
          const claiming = (at: number) => ({
            ...from('192.0.2.1'),
            forwarded: claim(at),
          });
          expect(await guess(node, 7, claiming)).toEqual(judged(5, 7));
          // The address in Forwarded is not locked out.
          expect((await callWith(node, key, from('203.0.113.7'))).status).toBe(
            200,
          );
          expect(
            await guess(node, 7, (at) => ({ forwarded: claim(at) })),
          ).toEqual(judged(5, 7));
        });
      }
    },
  );
});

/**
 * The key from the configuration: it alone may be guessable, because an
 * operator has chosen it.
 */
describe('the bootstrap key', () => {
  const key = 'bootstrap-0123456789abcdef0123456789';
  const guessed = (at: number) =>
    `bootstrap-0123456789abcdef0123456${100 + at}`;
  const onConfigured = (work: (node: ServiceNode) => Promise<void>) =>
    withLimit({ BOOTSTRAP_API_KEY: key, TRUST_PROXY: '127.0.0.1' }, work);
  const one = from('192.0.2.1');
  async function guessIt(node: ServiceNode, count: number): Promise<number[]> {
    const statuses: number[] = [];
    for (let at = 0; at < count; at += 1)
      statuses.push((await callWith(node, guessed(at), one)).status);
    return statuses;
  }

  test('is accepted by both APIs while it is configured, also long after its last use', async () => {
    await onConfigured((node) =>
      withClock(async (setTo) => {
        for (const later of [0, 900, 59_000, 600_000]) {
          setTo(later);
          for (const api of apis)
            expect(await api.list({ ...store, ...node }, {}, key)).toEqual({
              data: [],
            });
        }
      }),
    );
    expect((await callWith(store, key)).status).toBe(401);
  });

  test('is limited like others: over the limit guesses are 429, and so is the key from an address that never used it', () =>
    onConfigured(async (node) => {
      expect(await guessIt(node, 8)).toEqual(judged(5, 8));
      const { status, headers, text } = await callWith(node, key, one);
      const message =
        'Too many requests with a wrong API key came from this address.';
      expect([status, JSON.parse(text)]).toEqual([
        429,
        { code: 'TOO_MANY_REQUESTS', status: 429, message },
      ]);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      // The other address has no guesses.
      expect((await callWith(node, key, from('192.0.2.2'))).status).toBe(200);
    }));

  test('is counted with all other wrong keys, except guesses that are too short; an address that used it gets 200', () =>
    onConfigured(async (node) => {
      expect((await callWith(node, key, one)).status).toBe(200);
      const short = async () =>
        expect((await callWith(node, key.slice(0, 31), one)).status).toBe(401);
      for (let at = 0; at < 10; at += 1) await short();
      expect(await guess(node, 3, () => one)).toEqual(judged(3, 3));
      expect(await guessIt(node, 4)).toEqual(judged(2, 4));
      await short();
      expect((await callWith(node, key, one)).status).toBe(200);
    }));

  test('is guessed in one piece: all guesses get one verdict, and every later one is refused', () =>
    onConfigured(async (node) => {
      const requests = Array.from({ length: 50 }, (_, at) => {
        const last = at === 49 ? 'Connection: close\r\n' : '';
        return `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${last}Authorization: Bearer ${guessed(at)}\r\n\r\n`;
      });
      const socket = connect(Number(new URL(node.origin).port), '127.0.0.1');
      socket.write(requests.join(''));
      expect(
        (await text(socket)).match(/(?<=HTTP\/1\.1 )\d+/g)?.map(Number),
      ).toEqual(judged(50, 50));
      expect((await callWith(node, guessed(50))).status).toBe(429);
    }));
});
