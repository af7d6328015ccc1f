import { ApolloClient, CombinedProtocolErrors, HttpLink, InMemoryCache } from '@apollo/client/core';
import { print } from 'graphql';
import { createClient } from 'graphql-sse';
import { PetAddedDocument } from '../../support/generated/graphql.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { Road } from '../../support/road.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll();
beforeEach(async () => {
  // A position in an empty store is before all that was ever added, and the end of the list is kept while one follows.
  await eventually(async () => store.app.subscriptions.count === 0);
  await store.empty();
});

const create = (name: string) => rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });

/** The recipe of docs/live.md: whatever connection is opened goes on after the last event. */
function connected(origin = store.origin, key = store.key) {
  let last: string | undefined;
  const client = createClient({
    url: `${origin}/graphql`,
    headers: () => ({ authorization: `Bearer ${key}`, ...(last && { 'last-event-id': last }) }),
    retryAttempts: Number.POSITIVE_INFINITY,
    retry: async () => undefined,
  });
  return { client, seen: (id: string) => (last = id) };
}

const query = print(PetAddedDocument);

test('graphql-sse’s client loses its connection ten times while animals are created, and misses none', async () => {
  const road = new Road(new URL(store.origin));
  await road.open();
  const { client, seen } = connected(new URL(road.url).origin);
  const names: string[] = [];
  let failure: unknown;
  const end = client.subscribe<any>(
    { query, variables: { after: '0' } },
    {
      next({ data }) {
        names.push(data.petAdded.name);
        seen(data.petAdded.id);
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
    road.cut();
    await road.open();
  }
  await eventually(async () => names.length >= created.length || failure !== undefined);
  expect([failure, names]).toEqual([undefined, created]);
  end();
  client.dispose();
  road.cut();
});

test('graphql-sse’s client is told of a wrong operation, or a wrong key, and does not try it again', async () => {
  for (const [key, text, code] of [
    [store.key, 'subscription { nix }', 'GRAPHQL_VALIDATION_FAILED'],
    ['ask_wrong', query, 'UNAUTHENTICATED'],
  ] as const) {
    const { client } = connected(store.origin, key);
    const results: unknown[] = [];
    await new Promise<void>((complete, error) => {
      client.subscribe({ query: text }, { next: (one) => results.push(one), error, complete });
    });
    expect(results).toMatchObject([{ errors: [{ extensions: { code } }] }]);
  }
});

/** Apollo Client as it comes: its own link speaks multipart HTTP. */
function byItsOwnLink(origin: string, key = store.key): ApolloClient {
  const link = new HttpLink({ uri: `${origin}/graphql`, headers: { authorization: `Bearer ${key}` } });
  return new ApolloClient({ link, cache: new InMemoryCache() });
}

test('@apollo/client follows the list by its own link, and continues after a lost connection', async () => {
  const road = new Road(new URL(store.origin));
  await road.open();
  const apollo = byItsOwnLink(new URL(road.url).origin);
  const seen: { id: string; name: string }[] = [];
  const follow = () =>
    new Promise<unknown>((failed) => {
      const live = apollo.subscribe({ query: PetAddedDocument, variables: { after: seen.at(-1)?.id ?? '0' } });
      live.subscribe(({ data, error }) => (data ? seen.push(data.petAdded) : failed(error)));
    });
  const first = follow();
  await create('Rex');
  await eventually(async () => seen.length === 1);
  road.cut();
  expect(await first).toBeInstanceOf(Error);
  await create('Bella');
  await road.open();
  void follow();
  await eventually(async () => seen.length === 2);
  await create('Ada');
  await eventually(async () => seen.length === 3);
  expect(seen.map(({ name }) => name)).toEqual(['Rex', 'Bella', 'Ada']);
  expect(Object.values(apollo.cache.extract() as object)).toContainEqual(
    expect.objectContaining({ id: expect.any(String), name: 'Rex', __typename: 'Pet' }),
  );
  apollo.stop();
  road.cut();
});

test('@apollo/client is told by its own link why its subscription ends, or does not begin', async () => {
  const { key, id } = await store.keys.issue({ name: 'frontend', scope: 'read' });
  const ended = new Promise<unknown>((failed) => {
    const live = byItsOwnLink(store.origin, key).subscribe({ query: PetAddedDocument, variables: {} });
    live.subscribe(({ error }) => failed(error));
  });
  await eventually(async () => store.app.subscriptions.count === 1);
  await store.keys.revoke(id);
  const error = await ended;
  expect(CombinedProtocolErrors.is(error) && error.errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  const refused = await new Promise<any>((failed) => {
    const live = byItsOwnLink(store.origin, 'ask_wrong').subscribe({ query: PetAddedDocument, variables: {} });
    live.subscribe(({ error }) => failed(error));
  });
  expect(refused.statusCode ?? refused.errors?.[0].extensions.status).toBe(401);
});
