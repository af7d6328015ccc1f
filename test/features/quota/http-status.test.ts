import { expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

const store = storeForAll();

const json = 'application/json';
const response = 'application/graphql-response+json';
const statusTexts = { 294: 'Partial Success', 429: 'Too Many Requests' };

test('an operation whose second field exceeds the quota gets 294 with its own status text, or 429 with application/json', async () => {
  // Each field costs one unit, and the quota is one unit per minute.
  const both = '{a:pet(id:1){id}b:pet(id:2){id}}';
  for (const [accept, status] of [
    [response, 294],
    [json, 429],
  ] as const) {
    await onNode(store, { QUOTA_PER_MINUTE: '1' }, async ({ origin }) => {
      const execute = (query: string) => {
        const headers = { authorization: `Bearer ${store.key}`, accept };
        return fetch(`${origin}/graphql?query=${query}`, { headers });
      };
      const received = await execute(both);
      expect([received.status, received.statusText]).toEqual([
        status,
        statusTexts[status],
      ]);
      expect(await received.json()).toMatchObject({
        data: { a: null, b: null },
        errors: [
          {
            path: ['b'],
            extensions: { code: 'TOO_MANY_REQUESTS', status: 429 },
          },
        ],
      });
      expect(Number(received.headers.get('retry-after'))).toBeGreaterThan(0);
      const next = await execute('{pets{id}}');
      expect([next.status, next.statusText]).toEqual([429, statusTexts[429]]);
    });
  }
});
