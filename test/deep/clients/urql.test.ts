import { Client, cacheExchange, fetchExchange } from '@urql/core';
import { CreatePetDocument, PetDocument, PetsDocument } from '../../support/generated/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** urql as its documentation sets it up. Unless told otherwise it sends queries by GET, and mutations by POST. */

const store = storeForAll();
beforeEach(() => store.empty());

function connected(key = store.key) {
  const methods: Array<string | undefined> = [];
  const statuses: number[] = [];
  const client = new Client({
    url: `${store.origin}/graphql`,
    exchanges: [cacheExchange, fetchExchange],
    fetchOptions: { headers: { authorization: `Bearer ${key}` } },
    fetch: async (url, init) => {
      methods.push(init?.method);
      const response = await fetch(url, init);
      statuses.push(response.status);
      return response;
    },
  });
  return { client, methods, statuses };
}

test('@urql/core creates, lists and fetches an animal, int64 to the last digit', async () => {
  const { client, methods } = connected();
  const input = { name: 'Rex', categoryId: '9223372036854775807', status: 'sold' } as const;
  const created = await client.mutation(CreatePetDocument, { input });
  expect(created.error).toBeUndefined();
  const rex = created.data?.createPet;
  expect(rex).toMatchObject({ id: expect.stringMatching(/^\d+$/), ...input });

  const listed = await client.query(PetsDocument, { status: 'sold' });
  expect([listed.error, listed.data?.pets]).toEqual([undefined, [rex]]);
  const found = await client.query(PetDocument, { id: `${rex?.id}` });
  expect([found.error, found.data?.pet]).toEqual([undefined, rex]);
  expect((await client.query(PetDocument, { id: '0' })).data).toEqual({ pet: null });
  expect(methods).toEqual(['POST', 'GET', 'GET', 'GET']);
});

test('@urql/core gets every failure as an error with its code, by GET and by POST', async () => {
  const { client, methods, statuses } = connected();
  const wrong = connected('wrong');
  const input = { name: 'Rex', categoryId: 'five' };
  const limit = 'many' as never;
  const unknown = ['The API key is not valid.', { code: 'UNAUTHENTICATED', status: 401 }];
  const refused = (message: unknown) => [message, { code: 'BAD_USER_INPUT', status: 400 }];
  for (const [result, expected] of [
    [await client.query(PetsDocument, { limit: 0 }), refused('limit must be an integer between 1 and 100.')],
    [
      await client.query(PetsDocument, { limit }),
      refused(expect.stringMatching(/^Variable "\$limit" got invalid value/)),
    ],
    [await client.mutation(CreatePetDocument, { input }), refused(expect.stringMatching(/^categoryId must be/))],
    [await wrong.client.query(PetsDocument, {}), unknown],
    [await wrong.client.mutation(CreatePetDocument, { input }), unknown],
  ] as const) {
    expect(result.error?.graphQLErrors.map(({ message, extensions }) => [message, extensions])).toEqual([expected]);
  }
  expect([methods, statuses]).toEqual([
    ['GET', 'GET', 'POST'],
    [294, 422, 294],
  ]);
  expect([wrong.methods, wrong.statuses]).toEqual([
    ['GET', 'POST'],
    [401, 401],
  ]);
});
