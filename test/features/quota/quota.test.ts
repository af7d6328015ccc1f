// runs: embedded, plugins

import { getIntrospectionQuery } from 'graphql';
import {
  sql,
  stock,
  together,
  whileReadsFail,
} from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import type { HttpResponse } from '../../support/http.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { type RestRequest, rest } from '../../support/rest.ts';
import {
  nodeForAll,
  onNode,
  type ServiceNode,
  startStore,
  storeForAll,
} from '../../support/store.ts';

/** The units that a key may use in a minute. */

const store = storeForAll();
beforeEach(() => sql(store.database, 'truncate pet restart identity cascade'));

function limitOf({ headers }: HttpResponse) {
  const [, remaining, reset] =
    /^"key";r=(\d+);t=(\d+)$/.exec(`${headers.ratelimit}`) ?? [];
  const [, quota, window] =
    /^"key";q=(\d+);w=(\d+);animal-store-unit="operations\+animals"$/.exec(
      `${headers['ratelimit-policy']}`,
    ) ?? [];
  return {
    remaining: Number(remaining),
    reset: Number(reset),
    quota: Number(quota),
    window: Number(window),
  };
}

/** @returns the units that are left after this request, which costs one */
const probe = async (node: ServiceNode) =>
  limitOf(await rest(node, '/v1/pets/999')).remaining;
const statusesOf = (responses: HttpResponse[]) =>
  responses.map(({ status }) => status);

/** Runs work on a node with a new key, whose minute begins now. */
const onNewMinute = async <Result>(
  quota: number,
  work: (node: ServiceNode) => Promise<Result>,
) => {
  const { key } = await store.keys.issue({ name: 'one test' });
  return onNode({ ...store, key }, { QUOTA_PER_MINUTE: `${quota}` }, work);
};

describe('the unit is one per operation and one per animal:', () => {
  const node = nodeForAll(store, { QUOTA_PER_MINUTE: '1000' });
  beforeEach(() => stock(store.database, 3));

  const client = async (scope: 'read' | 'write' = 'write') => {
    const { key } = await store.keys.issue({ name: 'one test', scope });
    return { ...node, key };
  };

  async function costOf(
    client: ServiceNode,
    request: () => Promise<HttpResponse>,
  ): Promise<number> {
    const before = await probe(client);
    await request();
    return before - (await probe(client)) - 1;
  }

  const create =
    'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';
  const newPet = { name: 'Rex', categoryId: 1 };
  const exact = { headers: { prefer: 'count=exact' } };

  const ids = (count: number) =>
    Array.from({ length: count }, (_, at) => `a${at}: id`).join(' ');
  const introspective =
    'fragment F on Query { __schema { queryType { name } } __type(name: "Pet") { name } }';
  test.each<
    [
      cost: number,
      what: string,
      query?: string,
      path?: string,
      request?: RestRequest,
    ]
  >([
    [4, 'a list of three', '{ pets { id } }', '/v1/pets'],
    [2, 'a list of one', '{ pets(limit: 1) { id } }', '/v1/pets?limit=1'],
    [
      1,
      'an empty list',
      '{ pets(status: sold) { id } }',
      '/v1/pets?status=sold',
    ],
    [
      1,
      'a list that is refused',
      '{ pets(limit: 0) { id } }',
      '/v1/pets?limit=0',
    ],
    // GraphQL's own type refuses it before a resolver runs.
    [1, 'a limit that is a fraction', undefined, '/v1/pets?limit=0.1'],
    [
      14,
      'a list with its total',
      '{ petsConnection { totalCount isTotalCountExact nodes { id } } }',
      '/v1/pets',
      exact,
    ],
    [2, 'an animal found', '{ pet(id: 1) { id } }', '/v1/pets/1'],
    [1, 'an animal that is unknown', '{ pet(id: 77) { id } }', '/v1/pets/77'],
    [1, 'an id that is none', '{ pet(id: "rex") { id } }', '/v1/pets/rex'],
    [
      2,
      'an animal created',
      create,
      '/v1/pets',
      { method: 'POST', json: newPet },
    ],
    [
      1,
      'a creation that is refused',
      create.replace('Rex', '\\u0000'),
      '/v1/pets',
      { method: 'POST', json: {} },
    ],
    [0, 'a syntax error', '{', '/v1/pets', { method: 'POST', body: '{' }],
    [0, 'an unknown name', '{ nothing }', '/v1/nothing'],
    [
      4,
      'two animals created',
      create.replace(
        '{',
        '{ a: createPet(input: { name: "a", categoryId: 1 }) { id } b: ',
      ),
    ],
    [
      4,
      'a connection of three',
      '{ petsConnection { edges { node { id } } } }',
    ],
    [
      4,
      'a connection without its edges',
      '{ petsConnection { pageInfo { hasNextPage } } }',
    ],
    [8, 'a list twice, by aliases', '{ a: pets { id } b: pets { id } }'],
    [
      6,
      'fragments',
      '{ ...F } fragment F on Query { pets { id } ...G } fragment G on Query { pet(id: 1) { id } }',
    ],
    [4, 'a field twice, which is merged', '{ pets { id } pets { name } }'],
    [4, 'a list of three with ten leaf fields', `{ pets { ${ids(10)} } }`],
    [
      4 + 20,
      'a list of three with eleven: one more for each item that it may have',
      `{ pets { ${ids(11)} } }`,
    ],
    [
      4 + 2 * 5,
      'a connection of three',
      `{ petsConnection(first: 5) { edges { node { ${ids(6)} } } nodes { ${ids(6)} } } }`,
    ],
    [
      4 + 20,
      'a connection whose size is null',
      `{ petsConnection(first: null) { nodes { ${ids(11)} } } }`,
    ],
    [
      2 + 1,
      'an animal found',
      `{ pet(id: 1) { ...F } } fragment F on Pet { ${ids(11)} }`,
    ],
    [0, 'a field that is skipped', '{ pets @skip(if: true) { id } }'],
    [1, 'the standard introspection', getIntrospectionQuery()],
    [
      6,
      'introspection beside a list of three',
      '{ a: __typename ...F pets { id } } '.concat(introspective),
    ],
    [0, 'the name of the type alone', '{ __typename }'],
  ])(
    '%i for %s, through each API that has it, interpreted and compiled',
    async (cost, _what, query, path, request) => {
      const one = await client();
      const calls = [
        path && (() => rest(one, path, request)),
        query && (() => graphqlText(one, { query })),
      ];
      for (let time = 0; time < 3; time += 1) {
        for (const call of calls) {
          if (call) expect(await costOf(one, call)).toBe(cost);
          await sql(store.database, 'delete from pet where id > 3');
        }
      }
    },
  );

  test('0 for the 403 of a key that may not create', async () => {
    const reader = await client('read');
    expect(
      await costOf(reader, () =>
        rest(reader, '/v1/pets', { method: 'POST', json: newPet }),
      ),
    ).toBe(0);
    expect(
      await costOf(reader, () => graphqlText(reader, { query: create })),
    ).toBe(0);
  });
});

test('a subscription costs one, and each animal of a page one', async () => {
  await stock(store.database, 3);
  await onNewMinute(100, async (node) => {
    const query = 'subscription { petAdded(after: "0") { id } }';
    const stream = await openStream(node, { body: { query } });
    await stream.until(3);
    stream.close();
    expect(await probe(node)).toBe(100 - 1 - 3 - 1);
  });
});

test('introspection that a key cannot pay for is refused', async () => {
  await onNewMinute(38, async (node) => {
    const introspect = (count: number) => {
      const fields = Array.from(
        { length: count },
        (_, at) => `a${at}: __schema { queryType { name } }`,
      );
      return graphqlText(node, { query: `{ ${fields.join(' ')} }` });
    };
    // The last one before the limit may overdraw it.
    expect([
      (await introspect(37)).status,
      (await introspect(37)).status,
    ]).toEqual([200, 200]);
    const refused = await introspect(1);
    expect(refused.status).toBe(429);
    expect(refused).not.toHaveProperty('data');
    const retryAfter = Number(refused.headers['retry-after']);
    const extensions = { code: 'TOO_MANY_REQUESTS', status: 429, retryAfter };
    expect(refused.errors).toEqual([
      { message: 'This key has used its 38 units of this minute.', extensions },
    ]);
  });
});

const lists = [
  {
    name: 'REST',
    list: (node: ServiceNode) => rest(node, '/v1/pets?limit=100'),
  },
  {
    name: 'GraphQL',
    list: (node: ServiceNode) =>
      graphqlText(node, { query: '{ pets(limit: 100) { id } }' }),
  },
];

test.each(lists)(
  'over the quota $name sends 429 with Retry-After, RateLimit and RateLimit-Policy',
  async (api) => {
    await stock(store.database, 5);
    await onNewMinute(6, async (node) => {
      const limit = {
        remaining: 0,
        quota: 6,
        window: 60,
        reset: expect.any(Number),
      };
      const last = await api.list(node);
      expect([last.status, limitOf(last)]).toEqual([200, limit]);
      const response = await api.list(node);
      const { reset } = limitOf(response);
      expect([
        response.status,
        limitOf(response),
        response.headers['retry-after'],
      ]).toEqual([429, limit, `${reset}`]);
      expect(reset).toBeGreaterThan(0);
      expect(reset).toBeLessThanOrEqual(60);
      const error = { code: 'TOO_MANY_REQUESTS', status: 429 };
      const message = 'This key has used its 6 units of this minute.';
      // A GraphQL client may see no headers.
      const place = { path: ['pets'], locations: [{ line: 1, column: 3 }] };
      const errors = [
        { message, ...place, extensions: { ...error, retryAfter: reset } },
      ];
      expect(JSON.parse(response.text)).toEqual(
        api.name === 'REST' ? { ...error, message } : { data: null, errors },
      );
    });
  },
);

test('each key has its own quota; both secrets of a key share one', async () => {
  await stock(store.database, 5);
  // Without a quota there are no headers for it.
  const { headers } = await rest(store, '/v1/pets');
  expect([headers.ratelimit, headers['ratelimit-policy']]).toEqual([
    undefined,
    undefined,
  ]);
  const greedy = await store.keys.issue({ name: 'greedy' });
  await onNewMinute(12, async (node) => {
    const call = (key?: string) => rest(node, '/v1/pets', { key });
    const responses = [
      await call(greedy.key),
      await call(greedy.key),
      await call(greedy.key),
    ];
    expect(statusesOf(responses)).toEqual([200, 200, 429]);
    expect(limitOf(await call()).remaining).toBe(6);
    const rotated = await store.keys.rotate(greedy.id, 60_000);
    expect((await call(rotated.key)).status).toBe(429);
  });
});

describe.each(lists)(
  '$name cannot overdraw a quota in parallel:',
  ({ list }) => {
    /** @returns the number of animals in each response */
    async function served(node: ServiceNode, count: number): Promise<number[]> {
      const responses = await together(node, store.database, count, () =>
        list(node),
      );
      const accepted = responses.filter(({ status }) => status === 200);
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(
        count - accepted.length,
      );
      return accepted.map(({ text }) => text.match(/"id"/g)?.length ?? 0);
    }

    test('300 lists of 100 at once get at most the units of the quota and those of one operation', async () => {
      await stock(store.database, 100);
      await onNewMinute(200, async (node) => {
        const units = (await served(node, 300)).reduce(
          (sum, animals) => sum + 1 + animals,
          0,
        );
        expect(units).toBeGreaterThanOrEqual(200);
        expect(units).toBeLessThan(200 + 101);
        const last = await rest(node, '/v1/pets/999');
        expect([last.status, limitOf(last).remaining]).toEqual([429, 0]);
      });
    });

    test('units that were reserved and not used are returned exactly', async () => {
      await stock(store.database, 3);
      await onNewMinute(500, async (node) => {
        const accepted = await served(node, 300);
        expect(new Set(accepted)).toEqual(new Set([3]));
        // The refused requests found all units reserved by others, and were not
        // charged.
        expect(accepted.length).toBeLessThanOrEqual(125);
        expect(await probe(node)).toBe(
          Math.max(0, 500 - 4 * accepted.length - 1),
        );
      });
    });

    test('an operation that fails costs one, regardless of its reservation', async () => {
      await onNewMinute(5000, async (node) => {
        await whileReadsFail(store.database, '57014', async () => {
          const responses = await together(node, store.database, 40, () =>
            list(node),
          );
          for (const { text } of responses)
            expect(text).toContain('SERVICE_UNAVAILABLE');
        });
        expect(await probe(node)).toBe(5000 - 40 - 1);
      });
    });
  },
);

test('a look-up reserves two units, because the animal may exist', async () => {
  await stock(store.database, 1);
  await onNewMinute(3, async (node) => {
    const responses = await together(node, store.database, 20, () =>
      rest(node, '/v1/pets/1'),
    );
    expect(
      statusesOf(responses).filter((status) => status === 200),
    ).toHaveLength(2);
  });
});

test('a refusal because of operations under way does not say that the quota is used up', async () => {
  await onNewMinute(100, async (node) => {
    const { rows } = store.database;
    let refused: HttpResponse | undefined;
    // While the first request reads, the second one arrives and gets its
    // response.
    store.database.rows = async (...statement) => {
      if (statement[0].name.startsWith('list_'))
        refused = await rest(node, '/v1/pets?limit=100');
      return rows.apply(store.database, statement) as never;
    };
    const served = await rest(node, '/v1/pets?limit=100').finally(() => {
      store.database.rows = rows;
    });
    expect(served.status).toBe(200);
    expect([
      refused?.status,
      refused?.headers['retry-after'],
      JSON.parse(`${refused?.text}`).message,
    ]).toEqual([
      429,
      '1',
      "What is left of this key's 100 units of this minute is taken by requests under way.",
    ]);
    expect(await probe(node)).toBe(98);
  });
});

test('a mutation that was carried out in part has no Retry-After', async () => {
  await onNewMinute(3, async (node) => {
    const create = (name: string) =>
      `${name}: createPet(input: { name: "${name}", categoryId: 1 }) { id }`;
    const query = `mutation { ${create('a')} ${create('b')} ${create('c')} }`;
    const { status, headers, errors } = await graphqlText(node, { query });
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty('retry-after');
    expect(errors).toMatchObject([
      { path: ['c'], extensions: { code: 'TOO_MANY_REQUESTS' } },
    ]);
    // The next mutation is refused before its first field.
    const next = await graphqlText(node, {
      query: `mutation { ${create('d')} }`,
    });
    expect([next.status, next.headers['retry-after']]).toEqual([
      429,
      expect.stringMatching(/^\d+$/),
    ]);
  });
});

test('a 304 is charged like the list, because the list was read', async () => {
  await stock(store.database, 5);
  const { key } = await store.keys.issue({ name: 'asks again' });
  await onNode(store, { QUOTA_PER_MINUTE: '100' }, async (node) => {
    const { headers } = await rest(node, '/v1/pets?limit=3', { key });
    const again = await rest(node, '/v1/pets?limit=3', {
      key,
      headers: { 'if-none-match': `${headers.etag}` },
    });
    expect(again).toMatchObject({
      status: 304,
      headers: { ratelimit: expect.stringMatching(/r=92;/) },
    });
    expect(again.headers['ratelimit-policy']).toBe(
      '"key";q=100;w=60;animal-store-unit="operations+animals"',
    );
  });
});

test('scripts of other origins may read what is left', () => {
  const origin = 'https://shop.example';
  const env = { QUOTA_PER_MINUTE: '9', CORS_ORIGINS: origin };
  return onNode(store, env, async (node) => {
    const { headers } = await rest(node, '/v1/pets', { headers: { origin } });
    expect(headers['access-control-expose-headers']).toMatch(
      /, RateLimit, RateLimit-Policy$/,
    );
  });
});

test('operations beyond it are counted, for both APIs', async () => {
  const limited = await startStore({ QUOTA_PER_MINUTE: '2' });
  const counter = limited.parts
    .flatMap(({ metrics = [] }) => metrics)
    .find(({ name }) => name === 'service_quota_refusals_total');
  expect(counter?.read()).toBe(0);
  for (let time = 1; time <= 3; time += 1) await rest(limited, '/v1/pets/999');
  await graphqlText(limited, { query: '{ pets { id } }' });
  expect(counter?.read()).toBe(2);
  await limited.close();
});
