import { sql, stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import type { HttpResponse } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();

async function stocked(animals: number): Promise<void> {
  await sql(store.database, 'truncate pet restart identity');
  await stock(store.database, animals);
}

const limitOf = ({ headers }: HttpResponse) => {
  const [, remaining, reset] = /^"key";r=(\d+);t=(\d+)$/.exec(`${headers.ratelimit}`) ?? [];
  const [, quota, window] =
    /^"key";q=(\d+);w=(\d+);animal-store-unit="operations\+animals"$/.exec(`${headers['ratelimit-policy']}`) ?? [];
  return { remaining: Number(remaining), reset: Number(reset), quota: Number(quota), window: Number(window) };
};

const fiftyAliases = `{ ${Array.from({ length: 50 }, (_, at) => `a${at}: pets(limit: 100) { id }`).join(' ')} }`;

async function byRest(node: ServiceNode): Promise<HttpResponse[]> {
  const responses: HttpResponse[] = [];
  for (let call = 0; call < 50; call += 1) responses.push(await rest(node, '/v1/pets?limit=100'));
  return responses;
}

/** What one side used of a quota that is large enough. */
async function used(call: (node: ServiceNode) => Promise<HttpResponse>): Promise<number> {
  const { key } = await store.keys.issue({ name: 'one side' });
  return onNode({ ...store, key }, { QUOTA_PER_MINUTE: '1000000' }, async (node) => {
    return 1_000_000 - limitOf(await call(node)).remaining;
  });
}

describe('50 aliases of pets(limit: 100) in one request, and 50 requests of limit=100', () => {
  test.each([
    [0, 50],
    [10, 550],
    [30, 1550],
    [150, 5050],
  ])('are charged the same with %i animals: %i', async (animals, units) => {
    await stocked(animals);
    expect(await used(async (node) => (await byRest(node)).at(-1) as HttpResponse)).toBe(units);
    expect(await used((node) => graphqlText(node, { query: fiftyAliases }))).toBe(units);
    // Compiled from the second time on: twice more, twice the units.
    const thrice = await used(async (node) => {
      for (let time = 0; time < 2; time += 1) await graphqlText(node, { query: fiftyAliases });
      return graphqlText(node, { query: fiftyAliases });
    });
    expect(thrice).toBe(3 * units);
  });

  test.each([
    [10, 50, 450],
    [18, 50, 50],
    [30, 33, 0],
    [150, 10, 0],
  ])(
    'under a quota of 1,000, with %i animals, %i are answered and %i units are left, on both faces',
    async (animals, answered, left) => {
      await stocked(animals);
      await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
        const responses = await byRest(node);
        expect(responses.filter(({ status }) => status === 200)).toHaveLength(answered);
        expect(responses.filter(({ status }) => status === 429)).toHaveLength(50 - answered);
        expect(limitOf(responses.at(-1) as HttpResponse)).toMatchObject({ remaining: left, quota: 1000, window: 60 });
      });
      await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
        const response = await graphqlText(node, { query: fiftyAliases });
        expect(limitOf(response)).toMatchObject({ remaining: left, quota: 1000, window: 60 });
        if (answered === 50) {
          expect(response.status).toBe(200);
          expect(Object.keys(response.data)).toHaveLength(50);
        } else {
          expect(response.status).toBe(429);
          expect(response.errors?.[0]?.path).toEqual([`a${answered}`]);
        }
      });
    },
  );
});

test.each([
  ['REST', (node: ServiceNode) => rest(node, '/v1/pets')],
  ['GraphQL', (node: ServiceNode) => graphqlText(node, { query: '{ pets { id } }' })],
])(
  'over the quota %s answers 429 TOO_MANY_REQUESTS with Retry-After, RateLimit and RateLimit-Policy',
  async (_face, call) => {
    await stocked(5);
    await onNode(store, { QUOTA_PER_MINUTE: '6' }, async (node) => {
      const last = await call(node);
      expect(last.status).toBe(200);
      expect(limitOf(last)).toEqual({ remaining: 0, quota: 6, window: 60, reset: expect.any(Number) });
      const response = await call(node);
      expect(response.status).toBe(429);
      expect(limitOf(response)).toEqual({ remaining: 0, quota: 6, window: 60, reset: expect.any(Number) });
      expect(response.headers['retry-after']).toBe(`${limitOf(response).reset}`);
      expect(limitOf(response).reset).toBeGreaterThan(0);
      expect(limitOf(response).reset).toBeLessThanOrEqual(60);
      const body = JSON.parse(response.text);
      const error = body.errors ? { ...body.errors[0].extensions, message: body.errors[0].message } : body;
      expect(error).toEqual({
        code: 'TOO_MANY_REQUESTS',
        status: 429,
        message: 'This key has used its 6 units of this minute.',
        // A GraphQL client may see no headers.
        ...(body.errors && { retryAfter: limitOf(response).reset }),
      });
    });
  },
);

test('a quota is per key: one that is used up takes nothing from another; it is one for both secrets of a key', async () => {
  await stocked(5);
  const greedy = await store.keys.issue({ name: 'greedy' });
  const modest = await store.keys.issue({ name: 'modest' });
  await onNode(store, { QUOTA_PER_MINUTE: '12' }, async (node) => {
    const call = (key: string) => rest(node, '/v1/pets', { key });
    expect(
      [await call(greedy.key), await call(greedy.key), await call(greedy.key)].map(({ status }) => status),
    ).toEqual([200, 200, 429]);
    expect(limitOf(await call(modest.key)).remaining).toBe(6);
    const rotated = await store.keys.rotate(greedy.id, 60_000);
    expect((await call(rotated.key)).status).toBe(429);
  });
});

test('without a quota nothing is said of one', async () => {
  const { headers } = await rest(store, '/v1/pets');
  expect([headers.ratelimit, headers['ratelimit-policy']]).toEqual([undefined, undefined]);
});
