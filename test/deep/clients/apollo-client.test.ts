import { hash } from 'node:crypto';
import { ApolloClient, CombinedGraphQLErrors, HttpLink, InMemoryCache } from '@apollo/client/core';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import {
  CreatePetDocument,
  type CreatePetMutation,
  PetDocument,
  PetsDocument,
} from '../../support/generated/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { onNode } from '../../support/nodes.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();
beforeEach(() => store.empty());

function connected(key = store.key, seen: number[] = []): ApolloClient {
  return new ApolloClient({ link: linkTo(store.origin, key, seen), cache: new InMemoryCache() });
}

/** @param seen gets the statuses of the answers */
function linkTo(origin: string, key: string, seen: number[]): HttpLink {
  return new HttpLink({
    uri: `${origin}/graphql`,
    headers: { authorization: `Bearer ${key}` },
    async fetch(url, init) {
      const response = await fetch(url, init);
      seen.push(response.status);
      return response;
    },
  });
}

async function created(client: ApolloClient, name: string): Promise<CreatePetMutation['createPet']> {
  const { data } = await client.mutate({
    mutation: CreatePetDocument,
    variables: { input: { name, categoryId: '5' } },
  });
  if (!data) throw new Error('no data');
  return data.createPet;
}

test('@apollo/client creates, lists and fetches an animal', async () => {
  const client = connected();
  const rex = await created(client, 'Rex');
  expect(rex).toMatchObject({ name: 'Rex', categoryId: '5', status: 'available' });
  const listed = await client.query({ query: PetsDocument, variables: { status: 'available' } });
  expect(listed.data?.pets).toEqual([rex]);
  expect((await client.query({ query: PetDocument, variables: { id: rex.id } })).data?.pet).toEqual(rex);
  expect((await client.query({ query: PetDocument, variables: { id: '0' } })).data?.pet).toBeNull();
});

test('@apollo/client keeps an int64 to its last digit, in its cache too', async () => {
  const client = connected();
  const input = { name: 'Rex', categoryId: '9223372036854775807' };
  await client.mutate({ mutation: CreatePetDocument, variables: { input } });
  for (const fetchPolicy of ['network-only', 'cache-only'] as const) {
    const { data } = await client.query({ query: PetsDocument, variables: {}, fetchPolicy });
    expect(data?.pets).toMatchObject([{ categoryId: input.categoryId }]);
  }
});

test('@apollo/client walks the pages by the last id seen', async () => {
  const client = connected();
  const all: unknown[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) all.push(await created(client, name));
  const walked: Array<{ id: string }> = [];
  for (;;) {
    const variables = { limit: 2, after: walked.at(-1)?.id ?? null };
    const { pets = [] } = (await client.query({ query: PetsDocument, variables })).data ?? {};
    walked.push(...pets);
    if (pets.length < 2) break;
  }
  expect(walked).toEqual(all);
});

test('@apollo/client gets every failure as an error with its code', async () => {
  const seen: number[] = [];
  const client = connected(store.key, seen);
  const refused = client.query({ query: PetsDocument, variables: { limit: 0 } });
  await expect(refused).rejects.toBeInstanceOf(CombinedGraphQLErrors);
  await expect(refused).rejects.toMatchObject({
    errors: [
      { message: 'limit must be an integer between 1 and 100.', extensions: { code: 'BAD_USER_INPUT', status: 400 } },
    ],
  });
  const wrongType = client.query({ query: PetsDocument, variables: { limit: 'many' as never } });
  await expect(wrongType).rejects.toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT', status: 400 } }] });
  // It takes both for what they are: an answer with errors, and a request that was refused.
  expect(seen).toEqual([294, 422]);
});

test('@apollo/client is told by its code that a key is not valid', async () => {
  const refused = connected('wrong').query({ query: PetsDocument, variables: {} });
  await expect(refused).rejects.toBeInstanceOf(CombinedGraphQLErrors);
  await expect(refused).rejects.toMatchObject({
    errors: [{ message: 'The API key is not valid.', extensions: { code: 'UNAUTHENTICATED', status: 401 } }],
  });
});

test('@apollo/client sends the text where its hash is not known, or persisted queries are off', async () => {
  const sha256 = (text: string) => hash('sha256', text);
  await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
    for (const [origin, statuses] of [
      [node.origin, [422, 200, 200]],
      // It does not ask again.
      [store.origin, [422, 200, 200]],
    ] as const) {
      const seen: number[] = [];
      const link = new PersistedQueryLink({ sha256 }).concat(linkTo(origin, store.key, seen));
      const client = new ApolloClient({ link, cache: new InMemoryCache() });
      for (let time = 1; time <= 2; time += 1) {
        const { data } = await client.query({ query: PetsDocument, fetchPolicy: 'network-only' });
        expect(data?.pets).toEqual([]);
      }
      expect(seen).toEqual(statuses);
    }
  });
});
