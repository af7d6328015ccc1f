import { createSecret } from '../../src/access/keys/secret.ts';
import { statementsOf, together } from '../support/database-access.ts';
import { callWith, guess, judged, withClock } from '../support/guesses.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { onNode, storeForAll } from '../support/store.ts';

/** Wrong keys are limited by address, and lock no other client out. */

describe('the limit', () => {
  const store = storeForAll();

  const limited = { AUTH_FAILURES_PER_MINUTE: '5' };

  describe('wrong keys from one address', () => {
    test('are 429 with Retry-After from the limit on, on both faces and for unknown paths', async () => {
      await onNode(store, limited, async (node) => {
        expect(await guess(node, 7)).toEqual(judged(5, 7));
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
          expect(Number(response.headers['retry-after'])).toBeLessThanOrEqual(60);
          const body = JSON.parse(response.text);
          expect(body.errors?.[0].extensions ?? body).toMatchObject({ code: 'TOO_MANY_REQUESTS', status: 429 });
        }
      });
    });

    test('beyond the limit ask the database nothing', async () => {
      await onNode(store, limited, async (node) => {
        await guess(node, 5);
        const statements = await statementsOf(store.database, async () => {
          expect(await guess(node, 20)).toEqual(judged(0, 20));
        });
        expect(statements).toEqual([]);
      });
    });

    test('do not shut out a key that was known a moment ago', async () => {
      await onNode(store, { ...limited, BOOTSTRAP_API_KEY: 'failures-0123456789abcdef0123456789' }, async (node) => {
        await withClock(async () => {
          for (const key of [store.key, 'failures-0123456789abcdef0123456789'])
            expect((await callWith(node, key)).status).toBe(200);
          expect(await guess(node, 7)).toEqual(judged(5, 7));
          for (const key of [store.key, 'failures-0123456789abcdef0123456789'])
            expect((await callWith(node, key)).status).toBe(200);
          // A key that would have to be looked up waits.
          expect((await callWith(node, (await store.keys.issue({ name: 'late' })).key)).status).toBe(429);
        });
      });
    });

    test('are counted, requests without a key are not', async () => {
      await onNode(store, limited, async (node) => {
        for (let at = 0; at < 20; at += 1) expect((await callWith(node, null)).status).toBe(401);
        expect(await guess(node, 1)).toEqual([401]);
        for (let at = 0; at < 20; at += 1) {
          expect((await callWith(node, null, { authorization: 'Basic eDp4' })).status).toBe(401);
        }
        expect(await guess(node, 5)).toEqual(judged(4, 5));
      });
    });

    test('are not limited when the limit is 0', async () => {
      await onNode(store, { AUTH_FAILURES_PER_MINUTE: '0' }, async (node) => {
        expect(await guess(node, 150)).toEqual(judged(150, 150));
      });
    });
  });
});

describe('keys in use', () => {
  /** Whoever shares an address with others cannot lock them out. */
  const store = storeForAll();

  const limited = { AUTH_FAILURES_PER_MINUTE: '5' };
  const mistyped = (at: number) => `${createSecret().slice(0, -1)}${at % 2 ? '' : '-'}`;
  const wrongShapes = ['x', 'wrong-key-of-somebody', 'sk_live_0123456789abcdef', mistyped(0), mistyped(1)];

  describe('100 anonymous requests do not lock out a key that is in use behind the same address', () => {
    test.each<[string, (at: number) => string]>([
      ['of the wrong shape', () => 'x'],
      ['mistyped', mistyped],
      ['of the right shape, and wrong', () => createSecret()],
    ])('with keys %s', async (_what, wrong) => {
      await onNode(store, { AUTH_FAILURES_PER_MINUTE: '100' }, async (node) => {
        await withClock(async (setTo) => {
          const inUse = async (expected: string[]) => {
            const call = async () => expect((await callWith(node, store.key)).status).toBe(200);
            expect(await statementsOf(store.database, call)).toEqual(expected);
          };
          const list = expect.stringContaining('list_') as unknown as string;
          await inUse(['select_keys', list]);
          for (let at = 0; at < 100; at += 1) expect((await callWith(node, wrong(at))).status).toBe(401);
          await inUse([list]);
          // Its look-up is too old to be believed: there is another one, whatever the others did.
          for (const later of [901, 1802, 30_000]) {
            setTo(later);
            await inUse(['select_keys', list]);
          }
        });
      });
    });
  });

  describe('keys of the wrong shape', () => {
    test('cost no look-up, are not counted, and are 401 however many they are, over the limit too', async () => {
      await onNode(store, limited, async (node) => {
        const tryAll = async () => {
          for (let at = 0; at < 50; at += 1) {
            expect((await callWith(node, wrongShapes[at % wrongShapes.length] as string)).status).toBe(401);
          }
        };
        expect(await statementsOf(store.database, tryAll)).toEqual([]);
        expect(await guess(node, 7)).toEqual(judged(5, 7));
        expect(await statementsOf(store.database, tryAll)).toEqual([]);
      });
    });
  });

  describe('a wrong key that is repeated', () => {
    test('is looked up once in ten seconds, and counted once', async () => {
      await onNode(store, limited, async (node) => {
        await withClock(async (setTo) => {
          const wrong = createSecret();
          const repeat = () =>
            statementsOf(store.database, async () => {
              for (let at = 0; at < 20; at += 1) expect((await callWith(node, wrong)).status).toBe(401);
            });
          expect(await repeat()).toEqual(['select_keys']);
          setTo(9999);
          expect(await repeat()).toEqual([]);
          setTo(10_001);
          expect(await repeat()).toEqual(['select_keys']);
          expect(await guess(node, 4)).toEqual(judged(3, 4));
          expect(await repeat()).toEqual([]);
        });
      });
    });

    test('is counted once, too, when all come at the same time', async () => {
      await onNode(store, limited, async (node) => {
        const wrong = createSecret();
        const answers = await together(node, store.database, 50, () => callWith(node, wrong));
        expect(answers.map(({ status }) => status)).toEqual(judged(50, 50));
        expect(await guess(node, 5)).toEqual(judged(4, 5));
      });
    });

    test('because it was revoked does not lock out others, not even those that were never seen', async () => {
      const revoked = await store.keys.issue({ name: 'revoked' });
      const other = await store.keys.issue({ name: 'other' });
      await onNode(store, limited, async (node) => {
        expect((await callWith(node, revoked.key)).status).toBe(200);
        await store.keys.revoke(revoked.id);
        await eventually(async () => (await callWith(node, revoked.key)).status === 401);
        await withClock(async (setTo) => {
          // Its client goes on, with a few connections, and whatever was remembered of the key is forgotten meanwhile.
          for (const later of [0, 15_000, 30_000]) {
            setTo(later);
            const answers = await together(node, store.database, 20, () => callWith(node, revoked.key));
            expect(answers.map(({ status }) => status)).toEqual(judged(20, 20));
          }
          expect((await callWith(node, other.key)).status).toBe(200);
        });
      });
    });
  });

  describe('wrong keys that come all at once', () => {
    test('are looked up together, in a few statements, and every later one is refused', async () => {
      await onNode(store, { AUTH_FAILURES_PER_MINUTE: '20' }, async (node) => {
        const statements = await statementsOf(store.database, async () => {
          const answers = await together(node, store.database, 300, () => callWith(node, createSecret()));
          expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
        });
        expect(statements.filter((name) => name === 'select_keys').length).toBeLessThan(10);
        expect(await guess(node, 20)).toEqual(judged(0, 20));
      });
    });

    test('good ones that have not been seen yet are all let in', async () => {
      const keys = await Promise.all(Array.from({ length: 30 }, (_, at) => store.keys.issue({ name: `key ${at}` })));
      await onNode(store, { AUTH_FAILURES_PER_MINUTE: '20' }, async (node) => {
        const answers = await Promise.all(keys.map(({ key }) => callWith(node, key)));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      });
    });
  });
});

describe('addresses', () => {
  const store = storeForAll();

  const limited = { AUTH_FAILURES_PER_MINUTE: '5' };
  const as = (name: string, value: (at: number) => string) => (at: number) => ({ [name]: value(at) });
  const from = (address: string) => ({ 'x-forwarded-for': address });

  describe('the address that counts', () => {
    test.each([
      ['X-Forwarded-For', as('x-forwarded-for', (at) => `192.0.2.${at}`)],
      ['Forwarded', as('forwarded', (at) => `for=192.0.2.${at}`)],
      ['X-Real-IP', as('x-real-ip', (at) => `192.0.2.${at}`)],
      ['X-Client-IP', as('x-client-ip', (at) => `192.0.2.${at}`)],
      ['True-Client-IP', as('true-client-ip', (at) => `192.0.2.${at}`)],
    ])('is the connection, whatever %s says, without TRUST_PROXY', async (_name, headers) => {
      await onNode(store, limited, async (node) => {
        expect(await guess(node, 6, headers)).toEqual(judged(5, 6));
      });
    });

    test('behind a proxy is the client that X-Forwarded-For names', async () => {
      await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
        expect(await guess(node, 6, () => from('192.0.2.1'))).toEqual(judged(5, 6));
        expect(await guess(node, 1, () => from('192.0.2.2'))).toEqual([401]);
      });
    });

    test('behind one proxy is what that proxy added, not what the client wrote before it', async () => {
      await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
        expect(await guess(node, 6, (at) => from(`198.51.100.${at}, 192.0.2.1`))).toEqual(judged(5, 6));
      });
    });

    test('is the connection when TRUST_PROXY names other proxies', async () => {
      await onNode(store, { ...limited, TRUST_PROXY: '203.0.113.9' }, async (node) => {
        expect(await guess(node, 6, (at) => from(`192.0.2.${at}`))).toEqual(judged(5, 6));
      });
    });

    test('is one for all addresses of an IPv6 network of 64 bits, which is what one client has', async () => {
      await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
        const neighbours = ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8::1:0:0:0:2'];
        expect(await guess(node, 6, (at) => from(neighbours[at % 3] as string))).toEqual(judged(5, 6));
        for (const stranger of ['2001:db8:0:2::1', '2001:db8::1', '2001:db9:0:1::1', '::1', '192.0.2.1']) {
          expect(await guess(node, 1, () => from(stranger))).toEqual([401]);
        }
      });
    });

    test('is the whole IPv4 address, also as an operating system that listens on IPv6 writes it', async () => {
      await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
        const spellings = ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:c000:0201'];
        expect(await guess(node, 6, (at) => from(spellings[at % 3] as string))).toEqual(judged(5, 6));
        expect(await guess(node, 1, () => from('::ffff:192.0.2.2'))).toEqual([401]);
      });
    });
  });

  // Proxies write X-Forwarded-*, and pass on what else a client sends: RFC 7239's Forwarded is the client's own word.
  describe.each(['1', '127.0.0.1'])('Forwarded is ignored with TRUST_PROXY=%s', (TRUST_PROXY) => {
    const behindProxy = { ...limited, TRUST_PROXY };
    const claiming = (address: string) => ({ ...from('192.0.2.1'), forwarded: `for=${address}` });

    test.each([
      ['an IPv4 address', (at: number) => `198.51.100.${at}`],
      ['an IPv6 address', (at: number) => `"[2001:db8:${at}::1]:4711"`],
      ['nothing readable', () => '"'],
    ])('who names %s there does not escape the limit', async (_what, address) => {
      await onNode(store, behindProxy, async (node) => {
        expect(await guess(node, 7, (at) => claiming(address(at)))).toEqual(judged(5, 7));
      });
    });

    test('who names a victim there does not lock it out', async () => {
      const { key } = await store.keys.issue({ name: 'never seen before' });
      await onNode(store, behindProxy, async (node) => {
        expect(await guess(node, 7, () => claiming('203.0.113.7'))).toEqual(judged(5, 7));
        expect((await callWith(node, key, from('203.0.113.7'))).status).toBe(200);
      });
    });

    test('alone it names no client: what counts is the connection', async () => {
      await onNode(store, behindProxy, async (node) => {
        expect(await guess(node, 7, (at) => ({ forwarded: `for=198.51.100.${at}` }))).toEqual(judged(5, 7));
      });
    });
  });
});
