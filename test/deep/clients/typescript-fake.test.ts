import {
  AnimalStore,
  type AnimalStoreOptions,
  type Pet,
  StoreError,
} from 'animal-store-client';
import { FakeService } from 'animal-store-client/fake';
import fc from 'fast-check';
import { sql } from '../../support/database-access.ts';
import {
  beforeEach,
  cases,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The fake service of clients/typescript answers its client as the service
 * does.
 */

const store = storeForAll();
let fake: FakeService;
beforeEach(async () => {
  await eventually(async () => store.app.subscriptions.count === 0);
  await store.empty();
  fake = new FakeService({ key: store.key });
});

const services: Array<[string, () => AnimalStoreOptions]> = [
  ['the service', () => ({ url: store.origin, key: store.key })],
  [
    'the fake service',
    () => ({ url: 'http://fake', key: store.key, fetch: fake.fetch }),
  ],
];

describe.each(services)('%s', (_, options) => {
  const client = () => new AnimalStore({ ...options(), retries: 0 });

  test('creates, lists, counts and finds', async () => {
    const rex = await client().create({
      name: 'Rex',
      categoryId: 9223372036854775807n,
      status: 'sold',
    });
    expect(rex).toEqual({
      id: expect.any(BigInt),
      name: 'Rex',
      categoryId: 9223372036854775807n,
      status: 'sold',
    });
    const tom = await client().create({
      name: 'Tom',
      categoryId: '-5',
      status: undefined,
    });
    expect(tom.status).toBe('available');
    expect(await client().page({ limit: 1 })).toEqual({
      items: [rex],
      next: rex.id,
    });
    expect(
      await client().page({ status: 'available', limit: 1, after: undefined }),
    ).toEqual({
      items: [tom],
      next: undefined,
    });
    expect(await Array.fromAsync(client().pets({ limit: 1 }))).toEqual([
      rex,
      tom,
    ]);
    expect(await client().page({ sort: 'id_desc', limit: 1 })).toEqual({
      items: [tom],
      next: tom.id,
    });
    const below = { sort: 'id_desc', after: tom.id } as const;
    expect((await client().page(below)).items.at(0)?.id).toBe(tom.id - 1n);
    expect(await client().page({ after: tom.id })).toEqual({
      items: [],
      next: undefined,
    });
    expect(await client().pet(tom.id)).toEqual(tom);
    expect(await client().count()).toEqual({ total: 2, isExact: true });
    expect(await client().count({ status: 'pending' })).toEqual({
      total: 0,
      isExact: true,
    });
  });

  test('lists what is added, from a position and with a filter, and after a lost connection', async () => {
    const pets: Pet[] = [
      await client().create({ name: 'First', categoryId: 1 }),
    ];
    const before = (pets[0] as Pet).id - 1n;
    const seen: Pet[] = [];
    const user = new AbortController();
    const ended = (async () => {
      const patient = new AnimalStore(options());
      for await (const pet of patient.added(
        { after: before, status: 'available' },
        { signal: user.signal },
      ))
        seen.push(pet);
    })().catch((error) => error);
    await eventually(async () => seen.length === 1);
    await client().create({ name: 'Sold', categoryId: 1, status: 'sold' });
    pets.push(
      await client().create({ name: 'Second', categoryId: 9007199254740993n }),
    );
    await eventually(async () => seen.length === 2);
    fake.disconnect();
    pets.push(await client().create({ name: 'Third', categoryId: 1 }));
    await eventually(async () => seen.length === 3);
    user.abort('enough');
    expect([seen, await ended]).toEqual([pets, 'enough']);
  });
});

test('the fake service refuses what the service refuses, with the same code, status and message', async () => {
  const refusals = async (options: AnimalStoreOptions) => {
    const client = new AnimalStore({ ...options, retries: 0 });
    const once = { idempotencyKey: 'tom-1' };
    const tom = await client.create({ name: 'Tom', categoryId: 1 }, once);
    expect(await client.create({ name: 'Tom', categoryId: 1 }, once)).toEqual(
      tom,
    );
    const calls = [
      client.pet(0),
      client.page({ limit: 0 }),
      client.page({ limit: 1e21 }),
      client.page({ limit: 1.5 }),
      client.page({ limit: '5.0' as never, after: '+7' }),
      client.page({ sort: 'ID' as never }),
      client.page({ sort: 'name' as never }),
      client.page({ sort: ' id_desc' as never, status: 'Sold' as never }),
      client.page({ limit: 101, status: 'gone' as never, after: 2n ** 63n }),
      client.create({
        name: 'x'.repeat(1001),
        categoryId: 2n ** 64n,
        status: 'gone' as never,
      }),
      client.create({ name: '\u0000', categoryId: 1 }),
      client.create({ categoryId: 1 } as never),
      client.create({ name: 5, categoryId: 1 } as never),
      client.create({ name: null, categoryId: 1 } as never),
      client.create({ name: {}, categoryId: 1 } as never),
      client.create({ name: [], categoryId: 1 } as never),
      client.create({ name: 'Tom' } as never),
      client.create({ name: 'Tom', categoryId: null } as never),
      client.create({ name: 'Rex', categoryId: 1 }, once),
      new AnimalStore({ ...options, key: 'ask_wrong', retries: 0 }).page(),
    ];
    const failures = await Promise.all(
      calls.map((call) => call.catch((error: unknown) => error)),
    );
    expect(await client.count()).toEqual({ total: 1, isExact: true });
    return failures.map(
      (error) =>
        error instanceof StoreError && [
          error.code,
          error.status,
          error.message,
        ],
    );
  };
  const [ofService, ofFake] = await Promise.all(
    services.map(([, options]) => refusals(options())),
  );
  expect(ofFake).toEqual(ofService);
});

const name = fc.oneof(
  fc.constantFrom<unknown>('Rex', 'Tom', 'x'.repeat(1000), 'x'.repeat(1001)),
  fc.constantFrom<unknown>(
    '',
    '\u0000',
    '\ud800',
    '🐱'.repeat(1000),
    null,
    5,
    [],
  ),
);
const categoryId = fc.constantFrom<unknown>(
  ...[1, '1', '01', -(2n ** 63n), 2n ** 63n - 1n, 2n ** 63n, null, undefined],
);
const status = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<unknown>(undefined, 'available') },
  fc.constantFrom<unknown>('sold', 'Sold', ' pending ', 'gone', '', null, 7),
);
const idempotencyKey = fc.constantFrom(
  ...[
    'a',
    '"a"',
    '"a";v=1',
    'a b',
    '"a',
    'é',
    'k'.repeat(255),
    'k'.repeat(256),
  ],
  undefined,
);
const limit = fc.constantFrom<unknown>(
  ...[undefined, 1, 2, 100, 101, 0, -1, 1e21, 0.5, 'two', '2.0', '007', ''],
);
const sort = fc.constantFrom<unknown>(undefined, 'id', 'id_desc', 'Id', 'x');
const after = fc.constantFrom(undefined, 0, -1n, 2n ** 63n - 1n, 2n ** 63n);
const pet = fc
  .tuple(fc.record({ name, categoryId, status }), fc.boolean())
  .map(([one, isReversed]) =>
    isReversed ? Object.fromEntries(Object.entries(one).reverse()) : one,
  );
/** The first, and one that is no int64. */
const position = fc.constantFrom(0n, 2n ** 63n);
const filter = fc.constantFrom<unknown>(undefined, 'Sold', 'gone', 7);
/** Calls of the client, each with the result that a program would see. */
const call = fc.oneof(
  { weight: 4, arbitrary: fc.record({ pet, idempotencyKey }) },
  fc.record({ page: fc.record({ status, limit, after, sort }) }),
  fc.record({ count: fc.record({ status }) }),
  fc.record({ added: fc.record({ status: filter, after: position }) }),
);

test('a random sequence of calls has the same results, failures and messages on both', async () => {
  const outcome = async (client: AnimalStore, one: any) => {
    if (one.pet) return client.create(one.pet, one);
    if (one.page) return client.page(one.page);
    if (one.count) return client.count(one.count);
    const first = async () => {
      for await (const pet of client.added(one.added)) return pet;
    };
    const { status, after } = one.added;
    const { items } = await client
      .page({ status })
      .catch(() => ({ items: [1] }));
    // An empty list would wait for the next animal.
    return items.length > 0 || after > 0 ? first() : 'empty';
  };
  const run = async (options: AnimalStoreOptions, calls: unknown[]) => {
    const client = new AnimalStore({ ...options, retries: 0 });
    const ids: string[] = [];
    const results: unknown[] = [];
    for (const one of calls) {
      const result = await outcome(client, one).catch((error: Error) => [
        error.name,
        (error as StoreError).code,
        error.message,
      ]);
      const text = JSON.stringify(result, (key, value) => {
        if (key !== 'id' && key !== 'next')
          return typeof value === 'bigint' ? `${value}` : value;
        if (!ids.includes(`${value}`)) ids.push(`${value}`);
        // Refused creations of the service leave gaps.
        return value && ids.indexOf(`${value}`);
      });
      results.push(text);
    }
    return results;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 12, maxLength: 12 }),
      async (calls) => {
        await store.empty();
        // Keys of earlier sequences.
        await sql(store.database, 'delete from idempotency_key');
        fake = new FakeService({ key: store.key });
        const [ofService, ofFake] = await Promise.all(
          services.map(([, options]) => run(options(), calls)),
        );
        expect(ofFake).toEqual(ofService);
      },
    ),
    { numRuns: cases(60), endOnFailure: true },
  );
});

describe('a test with the fake service', () => {
  const client = (options: Partial<AnimalStoreOptions> = {}) =>
    new AnimalStore({
      url: 'http://fake',
      key: 'any',
      fetch: new FakeService().fetch,
      ...options,
    });

  test('sees its animals, adds some, and needs no key', async () => {
    const service = new FakeService();
    const rex = service.add({ name: 'Rex', categoryId: 5 });
    const tom = await client({ fetch: service.fetch }).create({
      name: 'Tom',
      categoryId: 5,
    });
    expect(service.pets).toEqual([rex, tom]);
    const texts = new AnimalStore({
      url: 'http://fake',
      key: 'any',
      ids: 'string',
      fetch: service.fetch,
    });
    expect(await texts.page({ limit: 1 })).toEqual({
      items: [{ ...rex, id: '1', categoryId: '5' }],
      next: '1',
    });
  });

  test('makes requests fail: for a while, for good, and on the way', async () => {
    const service = new FakeService();
    const patient = client({ fetch: service.fetch });
    service.failNext(
      { status: 429, code: 'TOO_MANY_REQUESTS', retryAfter: 0 },
      'NETWORK_ERROR',
    );
    expect(await patient.page()).toEqual({ items: [], next: undefined });
    service.failNext({
      status: 403,
      code: 'FORBIDDEN',
      message: 'This key only reads.',
    });
    const refused = {
      code: 'FORBIDDEN',
      status: 403,
      message: 'This key only reads.',
    };
    await expect(
      patient.create({ name: 'Rex', categoryId: 5 }),
    ).rejects.toMatchObject(refused);
    service.failNext('NETWORK_ERROR');
    await expect(
      client({ fetch: service.fetch, retries: 0 }).page(),
    ).rejects.toMatchObject({ code: 'NETWORK_ERROR' });
    expect(await patient.create({ name: 'Rex', categoryId: 5 })).toEqual(
      service.pets[0],
    );
  });

  test('answers documents of GraphQL as the test says', async () => {
    const service = new FakeService();
    service.graphql = ({ query, variables }) => ({ query, variables });
    const answer = await client({ fetch: service.fetch }).graphql(
      'query ($id: ID!) { pet(id: $id) { id } }',
      {
        id: 5n,
      },
    );
    expect(answer).toEqual({
      query: 'query ($id: ID!) { pet(id: $id) { id } }',
      variables: { id: '5' },
    });
  });
});
