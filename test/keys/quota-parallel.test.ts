import { sql, stock, whileReadsFail } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import type { HttpResponse } from '../support/http.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { onNode, type ServiceNode } from '../support/nodes.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';
import { together } from '../support/together.ts';

/** Operations that run side by side under one quota. */
let store: Store;
beforeAll(async () => {
  store = await startStore();
});
beforeEach(() => sql(store.database, 'truncate pet restart identity'));
afterAll(() => store.close());

/** A list of `limit` animals at most, and how many there were in the answer. */
interface Side {
  name: string;
  list(node: ServiceNode, limit: number | string): Promise<HttpResponse>;
  animalsIn(response: HttpResponse): number;
}

const restSide: Side = {
  name: 'REST',
  list: (node, limit) => rest(node, `/v1/pets?limit=${limit}`),
  animalsIn: ({ text }) => JSON.parse(text).length,
};

const graphqlSide: Side = {
  name: 'GraphQL',
  list: (node, limit) => graphqlText(node, { query: `{ pets(limit: ${limit}) { id } }` }),
  animalsIn: ({ text }) => JSON.parse(text).data.pets.length,
};

const remaining = ({ headers }: HttpResponse) => Number(/^"key";r=(\d+);t=\d+$/.exec(`${headers.ratelimit}`)?.[1]);
/** Costs one unit. */
const probe = (node: ServiceNode) => rest(node, '/v1/pets/999');

describe.each([restSide, graphqlSide])('$name cannot overdraw a quota in parallel', (side) => {
  test('300 lists of 100 at once get at most the units of the quota and those of one operation', async () => {
    await stock(store.database, 100);
    await onNode(store, { QUOTA_PER_MINUTE: '200' }, async (node) => {
      const responses = await together(node, store.database, 300, () => side.list(node, 100));
      const served = responses.filter(({ status }) => status === 200);
      const units = served.reduce((sum, response) => sum + 1 + side.animalsIn(response), 0);
      expect(units).toBeGreaterThanOrEqual(200);
      expect(units).toBeLessThan(200 + 101);
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(300 - served.length);
      const last = await probe(node);
      expect([last.status, remaining(last)]).toEqual([429, 0]);
    });
  });

  test('what was taken beforehand and not used is given back, to the unit', async () => {
    await stock(store.database, 3);
    await onNode(store, { QUOTA_PER_MINUTE: '500' }, async (node) => {
      const responses = await together(node, store.database, 300, () => side.list(node, 100));
      const served = responses.filter(({ status }) => status === 200);
      for (const response of served) expect(side.animalsIn(response)).toBe(3);
      // Those that were refused found all units taken by others, and paid nothing.
      expect(served.length).toBeGreaterThan(0);
      expect(served.length).toBeLessThanOrEqual(125);
      expect(remaining(await probe(node))).toBe(Math.max(0, 500 - 4 * served.length - 1));
      expect((await side.list(node, 100)).status).toBe(served.length < 125 ? 200 : 429);
    });
  });

  test('an operation that fails costs one, whatever it might have answered', async () => {
    await onNode(store, { QUOTA_PER_MINUTE: '5000' }, async (node) => {
      await whileReadsFail(store.database, '57014', async () => {
        const responses = await together(node, store.database, 40, () => side.list(node, 100));
        for (const { text } of responses) expect(text).toContain('SERVICE_UNAVAILABLE');
      });
      expect(remaining(await probe(node))).toBe(5000 - 40 - 1);
    });
  });

  test('a quota that is smaller than a page serves one operation', async () => {
    await stock(store.database, 100);
    for (const quota of ['1', '50', '100']) {
      const { key } = await store.keys.issue({ name: 'small' });
      await onNode({ ...store, key }, { QUOTA_PER_MINUTE: quota }, async (node) => {
        const responses = await together(node, store.database, 20, () => side.list(node, 100));
        const served = responses.filter(({ status }) => status === 200);
        expect(served.map(side.animalsIn)).toEqual([100]);
        expect(responses.filter(({ status }) => status === 429)).toHaveLength(19);
      });
    }
  });

  test.each(['0.1', '1.5', '99.9', '1e-3', '-1', '0'])('a limit of %s, which is refused, costs one', async (limit) => {
    await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
      expect(remaining(await probe(node))).toBe(999);
      for (let time = 0; time < 5; time += 1) {
        const { text } = await side.list(node, limit);
        expect(text).toMatch(/"(?:BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)"/);
      }
      // GraphQL's own types refuse a fraction before anything runs.
      const isCharged = side === restSide || Number.isInteger(Number(limit));
      expect(remaining(await probe(node))).toBe(999 - (isCharged ? 5 : 0) - 1);
    });
  });
});

test('who is refused because of operations under way is not told that all is used up', async () => {
  await onNode(store, { QUOTA_PER_MINUTE: '100' }, async (node) => {
    const { rows } = store.database;
    let refused: HttpResponse | undefined;
    // While the first one is read the second one comes, and is answered.
    store.database.rows = async (...statement) => {
      if (statement[0].name.startsWith('list_')) refused = await restSide.list(node, 100);
      return rows.apply(store.database, statement) as never;
    };
    const served = await restSide.list(node, 100).finally(() => {
      store.database.rows = rows;
    });
    expect(served.status).toBe(200);
    expect([refused?.status, refused?.headers['retry-after'], JSON.parse(`${refused?.text}`).message]).toEqual([
      429,
      '1',
      "What is left of this key's 100 units of this minute is taken by requests under way.",
    ]);
    expect(remaining(await probe(node))).toBe(98);
  });
});

test('a mutation of which some is done is not answered as one to be repeated', async () => {
  await onNode(store, { QUOTA_PER_MINUTE: '3' }, async (node) => {
    const create = (name: string) => `${name}: createPet(input: { name: "${name}", categoryId: 1 }) { id }`;
    const query = `mutation { ${create('a')} ${create('b')} ${create('c')} }`;
    const { status, headers, errors } = await graphqlText(node, { query });
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty('retry-after');
    expect(errors).toMatchObject([{ path: ['c'], extensions: { code: 'TOO_MANY_REQUESTS' } }]);
    // Nothing of the next one is done.
    const next = await graphqlText(node, { query: `mutation { ${create('d')} }` });
    expect([next.status, next.headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)]);
  });
});
