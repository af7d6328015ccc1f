import { createSecret } from '../../src/access/keys/secret.ts';
import { statementsOf } from '../support/database-access.ts';
import { callWith, guess, judged, withClock } from '../support/guesses.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { storeForAll } from '../support/store.ts';

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
