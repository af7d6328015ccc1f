import { inspect } from 'node:util';
import {
  AnimalStore,
  errorCodes,
  type Pet,
  StoreError,
} from 'animal-store-client';
import { print } from 'graphql';
import { httpStatusOf } from '#engine/errors.js';
import {
  CreatePetDocument,
  PetsDocument,
  type PetsQuery,
  type PetsQueryVariables,
} from '../../support/generated/graphql.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The built clients/typescript, imported by its public name, with the service.
 */

let client: AnimalStore;
const store = storeForAll({}, async () => {
  client = connect(store.key);
});
beforeEach(() => store.empty());

const connect = (key: string) =>
  new AnimalStore({
    url: store.origin,
    key,
    print: print as never,
    retries: 0,
  });

test.each([5n, 9223372036854775807n, -9223372036854775808n])(
  'categoryId %s reaches the service and comes back exactly',
  async (categoryId) => {
    const rex = await client.create({
      name: 'Rex',
      categoryId,
      status: 'sold',
    });
    expect(rex).toEqual({
      id: expect.any(BigInt),
      name: 'Rex',
      categoryId,
      status: 'sold',
    });
    expect(await client.page()).toEqual({ items: [rex], next: undefined });
    expect(await client.pet(rex.id)).toEqual(rex);
    expect((await rest(store, '/v1/pets')).text).toContain(
      `"categoryId":${categoryId},`,
    );
  },
);

test('with the option ids: "string" all ids are text, in both directions', async () => {
  const categoryId = '-9223372036854775808';
  const textClient = new AnimalStore({
    url: store.origin,
    key: store.key,
    ids: 'string',
  });
  const rex: Pet<'string'> = await textClient.create({
    name: 'Rex',
    categoryId,
  });
  expect(rex).toEqual({
    id: expect.stringMatching(/^\d+$/),
    name: 'Rex',
    categoryId,
    status: 'available',
  });
  expect(JSON.parse(JSON.stringify(rex))).toEqual(rex);
  const tom = await textClient.create({
    name: 'Tom',
    categoryId: BigInt(categoryId),
  });
  expect(await textClient.page({ limit: 1 })).toEqual({
    items: [rex],
    next: rex.id,
  });
  expect(await textClient.page({ after: rex.id })).toEqual({
    items: [tom],
    next: undefined,
  });
  expect(await Array.fromAsync(textClient.pets({ limit: 1 }))).toEqual([
    rex,
    tom,
  ]);
  expect(await textClient.pet(tom.id)).toEqual(tom);
  const exact = { ...rex, id: BigInt(rex.id), categoryId: BigInt(categoryId) };
  expect(await client.page({ limit: 1 })).toEqual({
    items: [exact],
    next: exact.id,
  });
});

test('a program that defines BigInt.prototype.toJSON still sends exact digits', async () => {
  const prototype = BigInt.prototype as { toJSON?: () => unknown };
  prototype.toJSON = function (this: bigint) {
    return Number(this);
  };
  const input = { name: 'Rex', categoryId: 9007199254740993n };
  try {
    expect(await client.create(input)).toMatchObject(input);
    const { createPet } = await client.graphql(CreatePetDocument, { input });
    expect(createPet.categoryId).toBe('9007199254740993');
  } finally {
    delete prototype.toJSON;
  }
});

test('a number is accepted as an int64 if it cannot have been rounded', async () => {
  expect(await client.create({ name: 'Rex', categoryId: 5 })).toMatchObject({
    categoryId: 5n,
    status: 'available',
  });
  for (const number of [2 ** 53, 1.5, Number.NaN]) {
    await expect(
      client.create({ name: 'Rex', categoryId: number }),
    ).rejects.toThrow(RangeError);
    await expect(client.pet(number)).rejects.toThrow(
      /^id is not a whole number up to 2\^53 - 1/,
    );
    await expect(client.page({ after: number })).rejects.toThrow(
      /^after is not/,
    );
  }
  for (const text of ['', '1.5', '0x10', ' 5', '5n', 'Rex']) {
    await expect(
      client.create({ name: 'Rex', categoryId: text }),
    ).rejects.toThrow(RangeError);
  }
  await expect(
    client.graphql('query ($id: ID!) { pet(id: $id) { id } }', { id: 2 ** 53 }),
  ).rejects.toThrow(RangeError);
  expect((await client.page()).items).toHaveLength(1);
});

test('the list is read page by page, from any position, with a filter, and only as far as the caller goes', async () => {
  const all: Pet[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    all.push(
      await client.create({
        name,
        categoryId: 1,
        status: name === 'c' ? 'sold' : 'available',
      }),
    );
  }
  expect(await Array.fromAsync(client.pets())).toEqual(all);
  expect(await Array.fromAsync(client.pets({ limit: 2 }))).toEqual(all);
  expect(
    await Array.fromAsync(client.pets({ status: 'sold', limit: 1 })),
  ).toEqual([all[2]]);
  expect(
    await Array.fromAsync(client.pets({ after: all[2]?.id ?? 0n, limit: 1 })),
  ).toEqual(all.slice(3));
  expect(await client.page({ limit: 2 })).toEqual({
    items: all.slice(0, 2),
    next: all[1]?.id,
  });

  const urls: string[] = [];
  const countingFetch: typeof fetch = (input, init) => {
    urls.push(String(input));
    return fetch(input, init);
  };
  const countingClient = new AnimalStore({
    url: store.origin,
    key: store.key,
    fetch: countingFetch,
  });
  for await (const pet of countingClient.pets({ limit: 2 }))
    if (pet.name === 'b') break;
  expect(urls).toEqual([`${store.origin}/v1/pets?limit=2`]);
});

test('animals are counted, all or those of a status, also with text ids', async () => {
  for (const status of ['sold', 'sold', 'pending'] as const)
    await client.create({ name: 'Rex', categoryId: 1, status });
  expect(await client.count()).toEqual({ total: 3, isExact: true });
  expect(await client.count({ status: 'sold' })).toEqual({
    total: 2,
    isExact: true,
  });
  const textClient = new AnimalStore({
    url: store.origin,
    key: store.key,
    ids: 'string',
  });
  expect(await textClient.count({ status: 'available' })).toEqual({
    total: 0,
    isExact: true,
  });
  await expect(connect('ask_wrong').count()).rejects.toMatchObject({
    code: 'UNAUTHENTICATED',
    status: 401,
  });
});

/** A document of the client preset with `documentMode: 'string'`. */
class TypedDocumentString<Result, Variables> extends String {
  declare __apiType?: (variables: Variables) => Result;
}

describe('GraphQL', () => {
  test('typed documents create and list, as trees and as text', async () => {
    const input = { name: 'Rex', categoryId: 9007199254740993n };
    const { createPet } = await client.graphql(CreatePetDocument, { input });
    expect(createPet).toMatchObject({
      name: 'Rex',
      categoryId: '9007199254740993',
      status: 'available',
    });
    expect(
      (await client.graphql(PetsDocument, { status: 'available' })).pets,
    ).toEqual([createPet]);
    const text = new TypedDocumentString<PetsQuery, PetsQueryVariables>(
      print(PetsDocument),
    );
    const { pets }: PetsQuery = await client.graphql(text, { limit: 1 });
    expect(pets).toEqual([createPet]);
    expect(await client.graphql('{ pets { name } }')).toEqual({
      pets: [{ name: 'Rex' }],
    });
  });

  test('the error for a tree without print names print', async () => {
    const bare = new AnimalStore({ url: store.origin, key: store.key });
    await expect(bare.graphql(PetsDocument)).rejects.toThrow(
      "give AnimalStore { print } from 'graphql'",
    );
  });

  test('a document that the service refuses is a StoreError', async () => {
    const invalid = { code: 'GRAPHQL_VALIDATION_FAILED', status: 400 };
    await expect(client.graphql('{ nothing }')).rejects.toMatchObject(invalid);
  });
});

test('the client knows every code of the service', () => {
  expect(errorCodes).toEqual(expect.arrayContaining(Object.keys(httpStatusOf)));
  expect(new Set(errorCodes).size).toBe(errorCodes.length);
});

test('a refused request is a StoreError with its code, status and message', async () => {
  const refused = client.create({ name: 'x'.repeat(10_001), categoryId: 1 });
  await expect(refused).rejects.toBeInstanceOf(StoreError);
  await expect(refused).rejects.toMatchObject({
    name: 'StoreError',
    code: 'BAD_USER_INPUT',
    status: 400,
  });
  const missing = {
    code: 'NOT_FOUND',
    status: 404,
    message: 'There is no animal with the id 0.',
  };
  await expect(client.pet(0)).rejects.toMatchObject(missing);
});

describe('the key', () => {
  const secret = 'ask_wrong0123456789';

  test('is in no printed client and no printed error', async () => {
    const wrong = connect(secret);
    const nowhere = new AnimalStore({
      url: 'http://127.0.0.1:1',
      key: secret,
      retries: 0,
    });
    const calls = [
      wrong.page(),
      wrong.graphql('{ pets { id } }'),
      nowhere.page(),
    ];
    const failures = await Promise.all(
      calls.map((call) => call.catch((error) => error)),
    );
    expect(failures.map(({ code, status }: any) => ({ code, status }))).toEqual(
      [
        { code: 'UNAUTHENTICATED', status: 401 },
        { code: 'UNAUTHENTICATED', status: 401 },
        { code: 'NETWORK_ERROR', status: undefined },
      ],
    );
    expect(
      inspect([wrong, ...failures], { depth: 9, showHidden: true }),
    ).not.toContain(secret);
  });

  test('may be a function, which is called for each attempt: for a token that expires', async () => {
    const tokens = ['ask_expired', store.key];
    const client = new AnimalStore({
      url: store.origin,
      key: async () => tokens.shift() ?? store.key,
      retries: 0,
    });
    await expect(client.page()).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
    expect((await client.page()).items).toEqual([]);

    let calls = 0;
    const failing = () => {
      calls += 1;
      if (calls < 3) throw new Error('the identity provider is away');
      return store.key;
    };
    expect(
      (await new AnimalStore({ url: store.origin, key: failing }).page()).items,
    ).toEqual([]);
    expect(calls).toBe(3);
    const wrong = new AnimalStore({
      url: store.origin,
      key: () => `${secret}\n`,
      retries: 0,
    });
    const failure = await wrong.page().catch((error) => error);
    expect(failure).toMatchObject({
      code: 'NETWORK_ERROR',
      message: 'The function for the key has failed.',
    });
    expect(inspect(failure, { depth: 9 })).not.toContain(secret);
  });

  test.each(['', `${secret}\n`, `${secret} `, `${secret}é`])(
    '%j is refused without being repeated',
    (key) => {
      const create = () => new AnimalStore({ url: store.origin, key });
      expect(create).toThrow(TypeError);
      expect(create).not.toThrow(secret);
    },
  );
});

test.each(['ftp://127.0.0.1', 'http://me:secret@127.0.0.1', 'nowhere'])(
  '%s is not a service address',
  (url) => {
    expect(() => new AnimalStore({ url, key: 'k' })).toThrow(TypeError);
  },
);
