import { ApolloClient, HttpLink, InMemoryCache } from '@apollo/client/core';
import { print } from 'graphql';
import { createClient } from 'graphql-sse';
import { PetAddedDocument } from '../../support/generated/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { TcpProxy } from '../../support/servers/tcp-proxy.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();
beforeEach(async () => {
  // A position in an empty store precedes every animal ever added; a
  // subscription keeps the old end of the list.
  await eventually(async () => store.app.subscriptions.count === 0);
  await store.empty();
});

const create = (name: string) =>
  rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });

test('the client of graphql-sse misses no new animal, although it loses its connection ten times', async () => {
  const proxy = new TcpProxy(new URL(store.origin));
  await proxy.open();
  let last: string | undefined;
  // The recipe of docs/live.md: each connection continues after the last event.
  const client = createClient({
    url: `${new URL(proxy.url).origin}/graphql`,
    headers: () => ({
      authorization: `Bearer ${store.key}`,
      ...(last && { 'last-event-id': last }),
    }),
    retryAttempts: Number.POSITIVE_INFINITY,
    retry: async () => undefined,
  });
  const names: string[] = [];
  let failure: unknown;
  const end = client.subscribe<any>(
    { query: print(PetAddedDocument), variables: { after: '0' } },
    {
      next({ data }) {
        names.push(data.petAdded.name);
        last = data.petAdded.id;
      },
      error: (error) => (failure = error),
      complete: () => undefined,
    },
  );
  const created = Array.from({ length: 200 }, (_, at) => `animal ${at}`);
  for (const [at, name] of created.entries()) {
    await create(name);
    if (at % 20 !== 10) continue;
    await eventually(async () => names.length > at / 2);
    proxy.cut();
    await proxy.open();
  }
  await eventually(
    async () => names.length >= created.length || failure !== undefined,
  );
  expect([failure, names]).toEqual([undefined, created]);
  end();
  client.dispose();
  proxy.cut();
});

test('@apollo/client follows the list with its own link, and continues after a lost connection', async () => {
  const proxy = new TcpProxy(new URL(store.origin));
  await proxy.open();
  const headers = { authorization: `Bearer ${store.key}` };
  // HttpLink subscribes by multipart HTTP.
  const link = new HttpLink({
    uri: `${new URL(proxy.url).origin}/graphql`,
    headers,
  });
  const apollo = new ApolloClient({ link, cache: new InMemoryCache() });
  const received: { id: string; name: string }[] = [];
  const follow = () =>
    new Promise<unknown>((failed) => {
      const live = apollo.subscribe({
        query: PetAddedDocument,
        variables: { after: received.at(-1)?.id ?? '0' },
      });
      live.subscribe(({ data, error }) =>
        data ? received.push(data.petAdded) : failed(error),
      );
    });
  const first = follow();
  await create('Rex');
  await eventually(async () => received.length === 1);
  proxy.cut();
  expect(await first).toBeInstanceOf(Error);
  await create('Bella');
  await proxy.open();
  void follow();
  await eventually(async () => received.length === 2);
  await create('Ada');
  await eventually(async () => received.length === 3);
  expect(received.map(({ name }) => name)).toEqual(['Rex', 'Bella', 'Ada']);
  expect(Object.values(apollo.cache.extract() as object)).toContainEqual(
    expect.objectContaining({
      id: expect.any(String),
      name: 'Rex',
      __typename: 'Pet',
    }),
  );
  apollo.stop();
  proxy.cut();
});
