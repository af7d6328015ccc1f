import { hash } from 'node:crypto';
import { ApolloClient, CombinedGraphQLErrors, HttpLink, InMemoryCache } from '@apollo/client/core';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { cacheExchange, fetchExchange, Client as Urql } from '@urql/core';
import { ClientError, GraphQLClient } from 'graphql-request';
import type { NewPet } from '../../../examples/react/src/generated/graphql.ts';
import { CreatePetDocument, PetDocument, PetsDocument } from '../../support/generated/graphql.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

/** The clients that people use, each as its documentation sets it up, with the documents of codegen. */

const store = storeForAll();
beforeEach(() => store.empty());

/** What has been asked, and how it was answered. */
type Seen = Array<[method: string, status: number]>;
const watching = (seen: Seen): typeof fetch => {
  return async (url, init) => {
    const response = await fetch(url, init);
    seen.push([init?.method ?? 'GET', response.status]);
    return response;
  };
};

interface Connected {
  /** @throws the client's own error */
  create(input: object): Promise<any>;
  list(variables: object): Promise<any[]>;
  find(id: string): Promise<any>;
}

const linkTo = (origin: string, key: string, seen: Seen) =>
  new HttpLink({ uri: `${origin}/graphql`, headers: { authorization: `Bearer ${key}` }, fetch: watching(seen) });

function apollo(key: string, seen: Seen): Connected {
  const client = new ApolloClient({ link: linkTo(store.origin, key, seen), cache: new InMemoryCache() });
  return {
    create: async (input) =>
      (await client.mutate({ mutation: CreatePetDocument, variables: { input } as never })).data?.createPet,
    list: async (variables) => (await client.query({ query: PetsDocument, variables })).data?.pets ?? [],
    find: async (id) => (await client.query({ query: PetDocument, variables: { id } })).data?.pet,
  };
}

function graphqlRequest(key: string, seen: Seen): Connected {
  const headers = { authorization: `Bearer ${key}` };
  const client = new GraphQLClient(`${store.origin}/graphql`, { headers, fetch: watching(seen) });
  return {
    create: async (input) => (await client.request(CreatePetDocument, { input } as never)).createPet,
    list: async (variables) => (await client.request(PetsDocument, variables)).pets,
    find: async (id) => (await client.request(PetDocument, { id })).pet,
  };
}

/** Unless told otherwise it sends queries by GET, and mutations by POST. */
function urql(key: string, seen: Seen): Connected {
  const client = new Urql({
    url: `${store.origin}/graphql`,
    exchanges: [cacheExchange, fetchExchange],
    fetchOptions: { headers: { authorization: `Bearer ${key}` } },
    fetch: watching(seen),
  });
  const dataOf = async (result: PromiseLike<{ data?: any; error?: unknown }>) => {
    const { data, error } = await result;
    if (error) throw error;
    return data;
  };
  return {
    create: async (input) => (await dataOf(client.mutation(CreatePetDocument, { input } as never))).createPet,
    list: async (variables) => (await dataOf(client.query(PetsDocument, variables))).pets,
    find: async (id) => (await dataOf(client.query(PetDocument, { id }))).pet,
  };
}

/** The errors of an answer, as each client shows them. */
function errorsOf(error: any): Array<{ message: string; extensions: object }> {
  if (error instanceof CombinedGraphQLErrors) return error.errors as never;
  return error instanceof ClientError ? (error.response.errors as never) : error.graphQLErrors;
}

describe.each([
  { name: '@apollo/client', connect: apollo, reads: 'POST' },
  { name: 'graphql-request', connect: graphqlRequest, reads: 'POST' },
  { name: '@urql/core', connect: urql, reads: 'GET' },
])('$name', ({ connect, reads }) => {
  test('creates, lists and fetches an animal, int64 to the last digit', async () => {
    const seen: Seen = [];
    const client = connect(store.key, seen);
    const input = { name: 'Rex', categoryId: '9223372036854775807', status: 'sold' };
    const rex = await client.create(input);
    expect(rex).toMatchObject({ id: expect.stringMatching(/^\d+$/), ...input });
    expect(await client.list({ status: 'sold' })).toEqual([rex]);
    expect([await client.find(rex.id), await client.find('0')]).toEqual([rex, null]);
    expect(seen).toEqual([['POST', 200], ...Array(3).fill([reads, 200])]);
  });

  test('walks the pages by the last id seen', async () => {
    const client = connect(store.key, []);
    const all: unknown[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) all.push(await client.create({ name, categoryId: '1' }));
    const walked: Array<{ id: string }> = [];
    for (;;) {
      const page = await client.list({ limit: 2, after: walked.at(-1)?.id ?? null });
      walked.push(...page);
      if (page.length < 2) break;
    }
    expect(walked).toEqual(all);
  });

  test('gets every failure as an error with its code', async () => {
    const seen: Seen = [];
    const [client, wrong] = [connect(store.key, seen), connect('wrong', seen)];
    const five = { name: 'Rex', categoryId: 'five' };
    const refused = (message: unknown) => [message, { code: 'BAD_USER_INPUT', status: 400 }];
    const unknown = ['The API key is not valid.', { code: 'UNAUTHENTICATED', status: 401 }];
    for (const [call, expected] of [
      [() => client.list({ limit: 0 }), refused('limit must be an integer between 1 and 100.')],
      [() => client.list({ limit: 'many' }), refused(expect.stringMatching(/^Variable "\$limit" got invalid value/))],
      [() => client.create(five), refused(expect.stringMatching(/^categoryId must be/))],
      [() => wrong.list({}), unknown],
      [() => wrong.create(five), unknown],
    ] as const) {
      const error = await call().then(
        () => undefined,
        (failure) => failure,
      );
      expect(errorsOf(error).map(({ message, extensions }) => [message, extensions])).toEqual([expected]);
    }
    const statuses: Seen = [
      [reads, 294],
      [reads, 422],
      ['POST', 294],
    ];
    expect(seen).toEqual([...statuses, [reads, 401], ['POST', 401]]);
  });
});

test('@apollo/client keeps an int64 to its last digit in its cache, too', async () => {
  await apollo(store.key, []).create({ name: 'Rex', categoryId: '9223372036854775807' });
  const client = new ApolloClient({ link: linkTo(store.origin, store.key, []), cache: new InMemoryCache() });
  for (const fetchPolicy of ['network-only', 'cache-only'] as const) {
    const { data } = await client.query({ query: PetsDocument, variables: {}, fetchPolicy });
    expect(data?.pets).toMatchObject([{ categoryId: '9223372036854775807' }]);
  }
});

test('@apollo/client throws at a bigint in variables, so the types of examples/react refuse it', async () => {
  const input = { name: 'Rex', categoryId: 5n };
  // @ts-expect-error A category is the text of its digits.
  input satisfies NewPet;
  await expect(apollo(store.key, []).create(input)).rejects.toThrow('Do not know how to serialize a BigInt');
});

test('@apollo/client sends the text where its hash is not known, or persisted queries are off', async () => {
  const sha256 = (text: string) => hash('sha256', text);
  await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
    for (const { origin } of [node, store]) {
      const seen: Seen = [];
      const link = new PersistedQueryLink({ sha256 }).concat(linkTo(origin, store.key, seen));
      const client = new ApolloClient({ link, cache: new InMemoryCache() });
      for (let time = 1; time <= 2; time += 1) {
        const { data } = await client.query({ query: PetsDocument, fetchPolicy: 'network-only' });
        expect(data?.pets).toEqual([]);
      }
      // Where they are off it does not ask again.
      expect(seen.map(([, status]) => status)).toEqual([422, 200, 200]);
    }
  });
});
