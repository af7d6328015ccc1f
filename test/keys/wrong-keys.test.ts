import { createSecret } from '../../src/access/keys/secret.ts';
import { statementsOf, together } from '../support/database-access.ts';
import { callWith, guess, judged, withClock } from '../support/guesses.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { onNode, type ServiceNode, storeForAll } from '../support/store.ts';

/** Wrong keys are limited by address, and lock no other client out. */

const store = storeForAll();

const withLimit = (env: Record<string, string>, work: (node: ServiceNode) => Promise<void>) =>
  onNode(store, { AUTH_FAILURES_PER_MINUTE: '5', ...env }, work);
const onLimited = (work: (node: ServiceNode) => Promise<void>) => withLimit({}, work);
const statusesOf = (answers: Array<{ status: number }>) => answers.map(({ status }) => status);

describe('wrong keys from one address', () => {
  test('are 429 with Retry-After from the limit on, on both faces and for unknown paths, without a look-up', () =>
    onLimited(async (node) => {
      expect(await guess(node, 7)).toEqual(judged(5, 7));
      const statements = await statementsOf(store.database, async () => {
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
      expect(statements).toEqual([]);
    }));

  test('do not shut out a key that was known a moment ago', () =>
    onLimited((node) =>
      withClock(async () => {
        expect((await callWith(node, store.key)).status).toBe(200);
        expect(await guess(node, 7)).toEqual(judged(5, 7));
        expect((await callWith(node, store.key)).status).toBe(200);
        // A key that would have to be looked up waits.
        expect((await callWith(node, (await store.keys.issue({ name: 'late' })).key)).status).toBe(429);
      }),
    ));

  test('are counted; requests without a key, and those with one of the wrong shape, cost no look-up and are not', () =>
    onLimited(async (node) => {
      const secret = createSecret();
      const wrongShapes = ['x', 'sk_live_0123456789abcdef', secret.slice(0, -1), `${secret.slice(0, -1)}-`];
      const tryAll = async () => {
        for (const key of [null, ...wrongShapes, ...wrongShapes]) {
          expect((await callWith(node, key)).status).toBe(401);
        }
        expect((await callWith(node, null, { authorization: 'Basic eDp4' })).status).toBe(401);
      };
      expect(await statementsOf(store.database, tryAll)).toEqual([]);
      expect(await guess(node, 7)).toEqual(judged(5, 7));
      expect(await statementsOf(store.database, tryAll)).toEqual([]);
    }));

  test('are not limited when the limit is 0', () =>
    withLimit({ AUTH_FAILURES_PER_MINUTE: '0' }, async (node) =>
      expect(await guess(node, 150)).toEqual(judged(150, 150)),
    ));
});

test.each([
  ['of the wrong shape', () => 'x'],
  ['of the right shape', createSecret],
])('100 anonymous requests with keys %s do not lock out a key that is in use behind their address', (_what, wrong) =>
  withLimit({ AUTH_FAILURES_PER_MINUTE: '100' }, (node) =>
    withClock(async (setTo) => {
      const inUse = async (expected: string[]) => {
        const call = async () => expect((await callWith(node, store.key)).status).toBe(200);
        expect(await statementsOf(store.database, call)).toEqual(expected);
      };
      const list = expect.stringContaining('list_') as unknown as string;
      await inUse(['select_keys', list]);
      for (let at = 0; at < 100; at += 1) expect((await callWith(node, wrong())).status).toBe(401);
      await inUse([list]);
      // Its look-up is too old to be believed: there is another one, whatever the others did.
      for (const later of [901, 1802, 30_000]) {
        setTo(later);
        await inUse(['select_keys', list]);
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
      }),
    ));

  test('is counted once, too, when all come at the same time', () =>
    onLimited(async (node) => {
      const wrong = createSecret();
      const answers = await together(node, store.database, 50, () => callWith(node, wrong));
      expect(statusesOf(answers)).toEqual(judged(50, 50));
      expect(await guess(node, 5)).toEqual(judged(4, 5));
    }));

  test('because it was revoked does not lock out others, not even those that were never seen', async () => {
    const revoked = await store.keys.issue({ name: 'revoked' });
    const other = await store.keys.issue({ name: 'other' });
    await onLimited(async (node) => {
      expect((await callWith(node, revoked.key)).status).toBe(200);
      await store.keys.revoke(revoked.id);
      await eventually(async () => (await callWith(node, revoked.key)).status === 401);
      await withClock(async (setTo) => {
        // Its client goes on, with a few connections, and whatever was remembered of the key is forgotten meanwhile.
        for (const later of [0, 15_000, 30_000]) {
          setTo(later);
          const answers = await together(node, store.database, 20, () => callWith(node, revoked.key));
          expect(statusesOf(answers)).toEqual(judged(20, 20));
        }
        expect((await callWith(node, other.key)).status).toBe(200);
      });
    });
  });
});

test('wrong keys that come all at once are looked up in a few statements, and every later one is refused', () =>
  onLimited(async (node) => {
    const statements = await statementsOf(store.database, async () => {
      const answers = await together(node, store.database, 300, () => callWith(node, createSecret()));
      expect(new Set(statusesOf(answers))).toEqual(new Set([401]));
    });
    expect(statements.filter((name) => name === 'select_keys').length).toBeLessThan(10);
    expect(await guess(node, 20)).toEqual(judged(0, 20));
  }));

test('good ones that have not been seen yet, and come all at once, are let in', async () => {
  const keys = await Promise.all(Array.from({ length: 30 }, (_, at) => store.keys.issue({ name: `key ${at}` })));
  await onLimited(async (node) => {
    const answers = await Promise.all(keys.map(({ key }) => callWith(node, key)));
    expect(new Set(statusesOf(answers))).toEqual(new Set([200]));
  });
});

describe('the address that counts', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });

  test.each([{}, { TRUST_PROXY: '203.0.113.9' }] as Array<Record<string, string>>)(
    'is the connection, whatever a client says, with %j',
    (env) =>
      withLimit(env, async (node) => {
        const claims = (at: number) => ({
          ...from(`192.0.2.${at}`),
          forwarded: `for=192.0.2.${at}`,
          'x-real-ip': `192.0.2.${at}`,
          'x-client-ip': `192.0.2.${at}`,
          'true-client-ip': `192.0.2.${at}`,
        });
        expect(await guess(node, 6, claims)).toEqual(judged(5, 6));
      }),
  );

  test('behind one proxy is what that proxy added to X-Forwarded-For, not what the client wrote before it', () =>
    withLimit({ TRUST_PROXY: '1' }, async (node) => {
      expect(await guess(node, 6, (at) => from(`198.51.100.${at}, 192.0.2.1`))).toEqual(judged(5, 6));
      expect(await guess(node, 1, () => from('192.0.2.2'))).toEqual([401]);
    }));

  test('is one for all addresses of an IPv6 network of 64 bits, which is what one client has', () =>
    withLimit({ TRUST_PROXY: '1' }, async (node) => {
      const neighbours = ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8::1:0:0:0:2'];
      expect(await guess(node, 6, (at) => from(neighbours[at % 3] as string))).toEqual(judged(5, 6));
      for (const stranger of ['2001:db8:0:2::1', '2001:db8::1', '::1', '192.0.2.1']) {
        expect(await guess(node, 1, () => from(stranger))).toEqual([401]);
      }
    }));

  test('is the whole IPv4 address, also as an operating system that listens on IPv6 writes it', () =>
    withLimit({ TRUST_PROXY: '1' }, async (node) => {
      const spellings = ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:c000:0201'];
      expect(await guess(node, 6, (at) => from(spellings[at % 3] as string))).toEqual(judged(5, 6));
      expect(await guess(node, 1, () => from('::ffff:192.0.2.2'))).toEqual([401]);
    }));

  // Proxies write X-Forwarded-*, and pass on what else a client sends: RFC 7239's Forwarded is the client's own word.
  test.each(['1', '127.0.0.1'])('is not what Forwarded says, with TRUST_PROXY=%s', async (TRUST_PROXY) => {
    const { key } = await store.keys.issue({ name: 'never seen before' });
    for (const claim of [(at: number) => `for=198.51.100.${at}`, () => 'for=203.0.113.7', () => '"']) {
      await withLimit({ TRUST_PROXY }, async (node) => {
        const claiming = (at: number) => ({ ...from('192.0.2.1'), forwarded: claim(at) });
        expect(await guess(node, 7, claiming)).toEqual(judged(5, 7));
        // Who is named there is not locked out.
        expect((await callWith(node, key, from('203.0.113.7'))).status).toBe(200);
        expect(await guess(node, 7, (at) => ({ forwarded: claim(at) }))).toEqual(judged(5, 7));
      });
    }
  });
});
