import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSecret } from '../../src/keys/secret.ts';
import { statementsOf } from '../support/database-access.ts';
import { type HttpResponse, send } from '../support/http.ts';
import { onNode, type ServiceNode } from '../support/nodes.ts';
import { type Store, startStore } from '../support/store.ts';

let store: Store;
beforeAll(async () => {
  store = await startStore();
});
afterAll(() => store.close());

type Headers = Record<string, string>;

function call(
  { origin }: Pick<ServiceNode, 'origin'>,
  key: string | null,
  headers: Headers = {},
): Promise<HttpResponse> {
  return send(origin, { path: '/v1/pets', headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers } });
}

const wrong = 'wrong-key-of-somebody';
const limited = { AUTH_FAILURES_PER_MINUTE: '5' };

async function statuses(node: ServiceNode, count: number, headers: (at: number) => Headers = () => ({})) {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) found.push((await call(node, wrong, headers(at))).status);
  return found;
}

describe('wrong keys from one address', () => {
  test('are 429 with Retry-After from the limit on, on both faces and for unknown paths', async () => {
    await onNode(store, limited, async (node) => {
      expect(await statuses(node, 7)).toEqual([401, 401, 401, 401, 401, 429, 429]);
      for (const [method, path] of [
        ['GET', '/v1/pets'],
        ['POST', '/graphql'],
        ['GET', '/nothing'],
        ['GET', '/%'],
      ] as const) {
        const headers = { authorization: `Bearer ${wrong}` };
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
      await statuses(node, 5);
      const statements = await statementsOf(store.database, async () => {
        for (let at = 0; at < 20; at += 1) expect((await call(node, createSecret())).status).toBe(429);
      });
      expect(statements).toEqual([]);
    });
  });

  test('do not shut out a key that was known a moment ago', async () => {
    await onNode(store, { ...limited, BOOTSTRAP_API_KEY: 'failures-0123456789abcdef' }, async (node) => {
      const now = Date.now;
      const moment = now();
      Date.now = () => moment;
      try {
        expect((await call(node, store.key)).status).toBe(200);
        await statuses(node, 6);
        expect((await call(node, wrong)).status).toBe(429);
        expect((await call(node, store.key)).status).toBe(200);
        // The configured key needs no look-up, ever.
        expect((await call(node, 'failures-0123456789abcdef')).status).toBe(200);
        // A key that would have to be looked up waits.
        expect((await call(node, (await store.keys.issue({ name: 'late' })).key)).status).toBe(429);
      } finally {
        Date.now = now;
      }
    });
  });

  test('are counted, requests without a key are not', async () => {
    await onNode(store, limited, async (node) => {
      for (let at = 0; at < 20; at += 1) expect((await call(node, null)).status).toBe(401);
      expect(await statuses(node, 1)).toEqual([401]);
      for (let at = 0; at < 20; at += 1) {
        const response = await send(node.origin, { path: '/v1/pets', headers: { authorization: 'Basic eDp4' } });
        expect(response.status).toBe(401);
      }
      expect(await statuses(node, 5)).toEqual([401, 401, 401, 401, 429]);
    });
  });

  test('are not limited when the limit is 0', async () => {
    await onNode(store, { AUTH_FAILURES_PER_MINUTE: '0' }, async (node) => {
      expect(new Set(await statuses(node, 150))).toEqual(new Set([401]));
    });
  });
});

describe('the address that counts', () => {
  const as = (name: string, value: (at: number) => string) => (at: number) => ({ [name]: value(at) });

  test.each([
    ['X-Forwarded-For', as('x-forwarded-for', (at) => `192.0.2.${at}`)],
    ['Forwarded', as('forwarded', (at) => `for=192.0.2.${at}`)],
    ['X-Real-IP', as('x-real-ip', (at) => `192.0.2.${at}`)],
    ['X-Client-IP', as('x-client-ip', (at) => `192.0.2.${at}`)],
    ['True-Client-IP', as('true-client-ip', (at) => `192.0.2.${at}`)],
  ])('is the connection, whatever %s says, without TRUST_PROXY', async (_name, headers) => {
    await onNode(store, limited, async (node) => {
      expect((await statuses(node, 6, headers)).at(-1)).toBe(429);
    });
  });

  test.each([
    ['X-Forwarded-For', as('x-forwarded-for', () => '192.0.2.1'), as('x-forwarded-for', () => '192.0.2.2')],
    ['Forwarded', as('forwarded', () => 'for=192.0.2.1'), as('forwarded', () => 'for="[2001:db8::1]:4711"')],
  ])('behind a proxy is the client that %s names', async (_name, one, other) => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      expect((await statuses(node, 6, one)).at(-1)).toBe(429);
      expect(await statuses(node, 1, other)).toEqual([401]);
    });
  });

  test('behind one proxy is what that proxy added, not what the client wrote before it', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      const spoofed = as('x-forwarded-for', (at) => `198.51.100.${at}, 192.0.2.1`);
      expect((await statuses(node, 6, spoofed)).at(-1)).toBe(429);
    });
  });

  test('is the connection when TRUST_PROXY names other proxies', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '203.0.113.9' }, async (node) => {
      expect(
        (
          await statuses(
            node,
            6,
            as('x-forwarded-for', (at) => `192.0.2.${at}`),
          )
        ).at(-1),
      ).toBe(429);
    });
  });
});
