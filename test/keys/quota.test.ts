import { getIntrospectionQuery } from 'graphql';
import { Meter, Quota, quotaHooks } from '../../src/access/quota.ts';
import { sql, stock, together, whileReadsFail } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import type { HttpResponse } from '../support/http.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, type ServiceNode, type Store, startNode, storeForAll } from '../support/store.ts';

/** What a key may spend in a minute. */

describe('the cost of an operation', () => {
  const store = storeForAll();
  beforeEach(async () => {
    await sql(store.database, 'truncate pet restart identity');
    await stock(store.database, 3);
  });

  type Client = Pick<Store, 'origin' | 'key'>;

  const remaining = ({ headers }: HttpResponse) => Number(/^"key";r=(\d+);t=\d+$/.exec(`${headers.ratelimit}`)?.[1]);

  /** What a request cost, read from the headers of cheap ones before and after it. */
  async function costOf(client: Client, request: () => Promise<HttpResponse>): Promise<number> {
    const probe = async () => remaining(await rest(client, '/v1/pets/999'));
    const before = await probe();
    await request();
    return before - (await probe()) - 1;
  }

  const newPet = { name: 'Rex', categoryId: 1 };
  const create = 'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';

  const restCalls: Array<[number, string, (client: Client) => Promise<HttpResponse>]> = [
    [4, 'a list of three', (client) => rest(client, '/v1/pets')],
    [2, 'a list of one', (client) => rest(client, '/v1/pets?limit=1')],
    [1, 'an empty list', (client) => rest(client, '/v1/pets?status=sold')],
    [1, 'a list that is refused', (client) => rest(client, '/v1/pets?limit=0')],
    [
      14,
      'a list of three with its total',
      (client) => rest(client, '/v1/pets', { headers: { prefer: 'count=exact' } }),
    ],
    [2, 'an animal found', (client) => rest(client, '/v1/pets/1')],
    [1, 'an animal that is not there', (client) => rest(client, '/v1/pets/77')],
    [1, 'an id that is none', (client) => rest(client, '/v1/pets/rex')],
    [2, 'an animal created', (client) => rest(client, '/v1/pets', { method: 'POST', json: newPet })],
    [1, 'a creation that is refused', (client) => rest(client, '/v1/pets', { method: 'POST', json: {} })],
    [0, 'a body that cannot be read', (client) => rest(client, '/v1/pets', { method: 'POST', body: '{' })],
    [0, 'an unknown path', (client) => rest(client, '/v1/nothing')],
  ];

  const introspective = 'fragment F on Query { __schema { queryType { name } } __type(name: "Pet") { name } }';
  const aliased = (count: number, field: string) =>
    Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(' ');

  const documents: Array<[number, string, string]> = [
    [4, 'a list of three', '{ pets { id } }'],
    [2, 'a list of one', '{ pets(limit: 1) { id } }'],
    [1, 'an empty list', '{ pets(status: sold) { id } }'],
    [1, 'a list that is refused', '{ pets(limit: 0) { id } }'],
    [2, 'an animal found', '{ pet(id: 1) { id } }'],
    [1, 'an animal that is not there', '{ pet(id: 77) { id } }'],
    [1, 'an id that is none', '{ pet(id: "rex") { id } }'],
    [2, 'an animal created', create],
    [
      4,
      'two animals created',
      'mutation { a: createPet(input: { name: "a", categoryId: 1 }) { id } b: createPet(input: { name: "b", categoryId: 1 }) { id } }',
    ],
    [4, 'a connection of three', '{ petsConnection { edges { node { id } } } }'],
    [2, 'a connection of one', '{ petsConnection(first: 1) { edges { node { id } } } }'],
    [14, 'a connection of three with its total', '{ petsConnection { totalCount isTotalCountExact nodes { id } } }'],
    [4, 'a connection without its edges', '{ petsConnection { pageInfo { hasNextPage } } }'],
    [8, 'a list twice, by aliases', '{ a: pets { id } b: pets { id } }'],
    [
      6,
      'a list and an animal, in fragments',
      '{ ...F } fragment F on Query { pets { id } ...G } fragment G on Query { pet(id: 1) { id } }',
    ],
    [4, 'a field written twice, which is one', '{ pets { id } pets { name } }'],
    [0, 'a field that is skipped', '{ pets @skip(if: true) { id } }'],
    [1, 'introspection', '{ __schema { queryType { name } } }'],
    [2, 'introspection of a type beside the schema, in a fragment', `{ ...F } ${introspective}`],
    [37, 'introspection under 37 aliases', `{ ${aliased(37, '__schema { queryType { name } }')} }`],
    [6, 'introspection beside a list of three', '{ a: __typename ...F pets { id } } '.concat(introspective)],
    [0, 'the name of the type alone', '{ __typename }'],
    [0, 'a document that is refused', '{ nothing }'],
    [0, 'a document that cannot be read', '{'],
  ];

  describe('the unit: one per operation and one per animal', () => {
    let node: ServiceNode;
    beforeAll(async () => {
      node = await startNode(store, { QUOTA_PER_MINUTE: '1000' });
    });
    afterAll(() => node.close());

    /** Whose minute begins now. */
    async function newClient(scope: 'read' | 'write' = 'write'): Promise<Client> {
      const { key } = await store.keys.issue({ name: 'one test', scope });
      return { origin: node.origin, key };
    }

    test.each(restCalls)('%i for %s, on REST', async (cost, _what, call) => {
      const client = await newClient();
      expect(await costOf(client, () => call(client))).toBe(cost);
    });

    test.each(documents)('%i for %s, on GraphQL, interpreted and compiled', async (cost, _what, query) => {
      const client = await newClient();
      for (let time = 0; time < 3; time += 1) {
        await sql(store.database, 'delete from pet where id > 3');
        expect(await costOf(client, () => graphqlText(client, { query }))).toBe(cost);
      }
    });

    test('the standard introspection reads no animal and costs one, every time', async () => {
      const client = await newClient();
      for (let time = 0; time < 3; time += 1) {
        expect(await costOf(client, () => graphqlText(client, { query: getIntrospectionQuery() }))).toBe(1);
      }
    });

    test('introspection that a key cannot pay for is refused', async () => {
      const query = (count: number) => `{ ${aliased(count, '__schema { queryType { name } }')} }`;
      await onNode(store, { QUOTA_PER_MINUTE: '38' }, async (node) => {
        // The last one before the limit may overdraw it.
        for (const count of [37, 37]) expect((await graphqlText(node, { query: query(count) })).status).toBe(200);
        const refused = await graphqlText(node, { query: query(1) });
        expect(refused.status).toBe(429);
        expect(refused).not.toHaveProperty('data');
        expect(refused.errors).toEqual([
          {
            message: 'This key has used its 38 units of this minute.',
            extensions: { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter: Number(refused.headers['retry-after']) },
          },
        ]);
      });
    });

    test('nothing but 403 for a key that may not create', async () => {
      const reader = await newClient('read');
      expect(await costOf(reader, () => rest(reader, '/v1/pets', { method: 'POST', json: newPet }))).toBe(0);
      expect(await costOf(reader, () => graphqlText(reader, { query: create }))).toBe(0);
    });
  });
});

describe('REST and GraphQL', () => {
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

  const nodes = new Map<number, ServiceNode>();
  afterAll(() => Promise.all([...nodes.values()].map((node) => node.close())));

  /** The node with this quota, for a key whose minute begins now. */
  async function nodeWith(quota: number): Promise<ServiceNode> {
    const node = nodes.get(quota) ?? (await startNode(store, { QUOTA_PER_MINUTE: `${quota}` }));
    nodes.set(quota, node);
    const { key } = await store.keys.issue({ name: 'one side' });
    return { ...node, key };
  }

  /** What one side used of a quota that is large enough. */
  async function used(call: (node: ServiceNode) => Promise<HttpResponse>): Promise<number> {
    return 1_000_000 - limitOf(await call(await nodeWith(1_000_000))).remaining;
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
        const responses = await byRest(await nodeWith(1000));
        expect(responses.filter(({ status }) => status === 200)).toHaveLength(answered);
        expect(responses.filter(({ status }) => status === 429)).toHaveLength(50 - answered);
        expect(limitOf(responses.at(-1) as HttpResponse)).toMatchObject({ remaining: left, quota: 1000, window: 60 });
        const response = await graphqlText(await nodeWith(1000), { query: fiftyAliases });
        expect(limitOf(response)).toMatchObject({ remaining: left, quota: 1000, window: 60 });
        if (answered === 50) {
          expect(response.status).toBe(200);
          expect(Object.keys(response.data)).toHaveLength(50);
        } else {
          expect(response.status).toBe(429);
          expect(response.errors?.[0]?.path).toEqual([`a${answered}`]);
        }
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
      const node = await nodeWith(6);
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
});

describe('operations at the same time', () => {
  const store = storeForAll();
  beforeEach(() => sql(store.database, 'truncate pet restart identity'));

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

    test('a limit that is refused costs one', async () => {
      await onNode(store, { QUOTA_PER_MINUTE: '1000' }, async (node) => {
        for (const limit of ['0.1', '1.5', '99.9', '1e-3', '-1', '0']) {
          const before = remaining(await probe(node));
          const { text } = await side.list(node, limit);
          expect(text).toMatch(/"(?:BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)"/);
          // GraphQL's own types refuse a fraction before anything runs.
          const isCharged = side === restSide || Number.isInteger(Number(limit));
          expect([limit, before - remaining(await probe(node))]).toEqual([limit, isCharged ? 2 : 1]);
        }
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
});

describe('what is taken in advance', () => {
  test('is not credited to the next minute', async () => {
    const given: unknown[] = [];
    const used = (consumedPoints: number) => ({ consumedPoints, msBeforeNext: 0 });
    const limiter = {
      penalty: async (_key: number, units: number) => used(units),
      reward: async (_key: number, units: number) => {
        given.push(units);
        return used(0);
      },
    };
    const quota = new Quota(100, { limiter: () => limiter as never });
    // The minute ends as the units are taken.
    const { settle } = await quota.take(1, 50);
    await settle(49);
    expect(given).toEqual([0]);
  });

  test('by a look-up is two units: the animal may be there', async () => {
    const quota = new Quota(3);
    const { preValidation } = quotaHooks({ method: 'GET', url: '/v1/pets/:petId', handler: () => undefined });
    const lookUp = () =>
      new Promise((done) => {
        const request = { query: {}, meter: new Meter(quota, 1, { items: 0 }) };
        preValidation?.call({} as never, request as never, {} as never, done);
      });
    expect([await lookUp(), await lookUp()]).toEqual([undefined, undefined]);
    expect(await lookUp()).toMatchObject({ code: 'TOO_MANY_REQUESTS' });
  });
});
