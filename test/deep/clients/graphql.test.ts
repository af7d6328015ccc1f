import { hash } from 'node:crypto';
import {
  ApolloClient,
  CombinedGraphQLErrors,
  HttpLink,
  InMemoryCache,
} from '@apollo/client/core';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { cacheExchange, fetchExchange, Client as Urql } from '@urql/core';
import { ClientError, GraphQLClient } from 'graphql-request';
import type { NewPet } from '../../../examples/react/src/generated/graphql.ts';
import {
  CreatePetDocument,
  PetDocument,
  PetsDocument,
} from '../../support/generated/graphql.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

/**
 * Common GraphQL clients, each set up as in its documentation, with the
 * documents of codegen.
 */

const store = storeForAll();
beforeEach(() => store.empty());

/** The method and the status of each request. */
type Requests = Array<[method: string, status: number]>;
const record = (requests: Requests): typeof fetch => {
  return async (url, init) => {
    const response = await fetch(url, init);
    requests.push([init?.method ?? 'GET', response.status]);
    return response;
  };
};

/** Runs a document. @throws the client's own error */
type Execute = (
  document: TypedDocumentNode<any, any>,
  variables?: object,
) => Promise<any>;

const linkTo = (origin: string, key: string, requests: Requests) =>
  new HttpLink({
    uri: `${origin}/graphql`,
    headers: { authorization: `Bearer ${key}` },
    fetch: record(requests),
  });

function apollo(key: string, requests: Requests): Execute {
  const client = new ApolloClient({
    link: linkTo(store.origin, key, requests),
    cache: new InMemoryCache(),
  });
  return async (document, variables = {}) => {
    const isMutation = document === CreatePetDocument;
    const sent = isMutation
      ? client.mutate({ mutation: document, variables })
      : client.query({ query: document, variables });
    return (await sent).data;
  };
}

function graphqlRequest(key: string, requests: Requests): Execute {
  const headers = { authorization: `Bearer ${key}` };
  const client = new GraphQLClient(`${store.origin}/graphql`, {
    headers,
    fetch: record(requests),
  });
  return (document, variables) => client.request(document, variables);
}

/** By default it sends queries by GET and mutations by POST. */
function urql(key: string, requests: Requests): Execute {
  const client = new Urql({
    url: `${store.origin}/graphql`,
    exchanges: [cacheExchange, fetchExchange],
    fetchOptions: { headers: { authorization: `Bearer ${key}` } },
    fetch: record(requests),
  });
  return async (document, variables = {}) => {
    const result =
      document === CreatePetDocument
        ? client.mutation(document, variables)
        : client.query(document, variables);
    const { data, error } = await result;
    if (error) throw error;
    return data;
  };
}

/** The errors of a response, as each client exposes them. */
function errorsOf(error: any): Array<{ message: string; extensions: object }> {
  if (error instanceof CombinedGraphQLErrors) return error.errors as never;
  return error instanceof ClientError
    ? (error.response.errors as never)
    : error.graphQLErrors;
}

describe.each([
  { name: '@apollo/client', connect: apollo, reads: 'POST' },
  { name: 'graphql-request', connect: graphqlRequest, reads: 'POST' },
  { name: '@urql/core', connect: urql, reads: 'GET' },
])('$name', ({ connect, reads }) => {
  test('creates, lists and fetches an animal with an exact int64', async () => {
    const requests: Requests = [];
    const execute = connect(store.key, requests);
    const input = {
      name: 'Rex',
      categoryId: '9223372036854775807',
      status: 'sold',
    };
    const { createPet: rex } = await execute(CreatePetDocument, { input });
    expect(rex).toMatchObject({ id: expect.stringMatching(/^\d+$/), ...input });
    expect(
      await execute(PetsDocument, { status: 'sold', limit: 1 }),
    ).toMatchObject({ pets: [rex] });
    expect(await execute(PetsDocument, { after: rex.id })).toMatchObject({
      pets: [],
    });
    expect(await execute(PetDocument, { id: rex.id })).toMatchObject({
      pet: rex,
    });
    expect(await execute(PetDocument, { id: '0' })).toMatchObject({
      pet: null,
    });
    expect(requests).toEqual([['POST', 200], ...Array(4).fill([reads, 200])]);
  });

  test('gets every failure as an error with its code', async () => {
    const requests: Requests = [];
    const [known, wrong] = [
      connect(store.key, requests),
      connect('wrong', requests),
    ];
    const five = { input: { name: 'Rex', categoryId: 'five' } };
    const refused = (message: unknown) => [
      message,
      { code: 'BAD_USER_INPUT', status: 400 },
    ];
    const unknown = [
      'The API key is not valid.',
      { code: 'UNAUTHENTICATED', status: 401 },
    ];
    for (const [call, expected] of [
      [
        () => known(PetsDocument, { limit: 0 }),
        refused('limit must be an integer between 1 and 100.'),
      ],
      [
        () => known(PetsDocument, { limit: 'x' }),
        refused(expect.stringMatching(/^Variable "\$limit" got invalid/)),
      ],
      [
        () => known(CreatePetDocument, five),
        refused(expect.stringMatching(/^categoryId must be/)),
      ],
      [() => wrong(PetsDocument), unknown],
      [() => wrong(CreatePetDocument, five), unknown],
    ] as const) {
      const error = await call().catch((failure) => failure);
      expect(
        errorsOf(error).map(({ message, extensions }) => [message, extensions]),
      ).toEqual([expected]);
    }
    const responses: Array<[number, string?]> = [
      [294],
      [422],
      [294, 'POST'],
      [401],
      [401, 'POST'],
    ];
    expect(requests).toEqual(
      responses.map(([status, method = reads]) => [method, status]),
    );
  });
});

test('@apollo/client throws on a bigint in variables, so the types of examples/react refuse it', async () => {
  const input = { name: 'Rex', categoryId: 5n };
  // @ts-expect-error A categoryId is a string of digits.
  input satisfies NewPet;
  await expect(
    apollo(store.key, [])(CreatePetDocument, { input }),
  ).rejects.toThrow('Do not know how to serialize a BigInt');
});

test('@apollo/client sends the text of a query when its hash is unknown or persisted queries are off', async () => {
  const sha256 = (text: string) => hash('sha256', text);
  await onNode(store, { GRAPHQL_APQ: 'true' }, async (node) => {
    for (const { origin } of [node, store]) {
      const requests: Requests = [];
      const link = new PersistedQueryLink({ sha256 }).concat(
        linkTo(origin, store.key, requests),
      );
      const client = new ApolloClient({ link, cache: new InMemoryCache() });
      for (let time = 1; time <= 2; time += 1) {
        const { data } = await client.query({
          query: PetsDocument,
          fetchPolicy: 'network-only',
        });
        expect(data?.pets).toEqual([]);
      }
      // Where persisted queries are off, the client sends no further hash.
      expect(requests.map(([, status]) => status)).toEqual([422, 200, 200]);
    }
  });
});
