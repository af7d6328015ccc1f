import {
  ApolloClient,
  gql,
  HttpLink,
  InMemoryCache,
} from '@apollo/client/core';
import { EventSource } from 'eventsource';
import { providerForAll } from '../../../features/tokens/provider.ts';
import { ledgersModule } from '../../../modules/ledgers/ledgers.module.ts';
import { afterEach, beforeAll, expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { TcpProxy } from '../../../support/servers/tcp-proxy.ts';
import { storeForAll } from '../../../support/store.ts';

/** Clients of others follow changes over lost connections. */

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() => Object.assign(env, provider.env, { JWT_TENANT: 'tenant' }));
const store = storeForAll(env, undefined, { more: [ledgersModule] });
const tokenOf = (tenant: string) =>
  provider.token({ scope: 'pets:write', sub: 'ada', tenant });
const send = (tenant: string, method: string, path: string, json?: object) =>
  rest(store, `/v1/files${path}`, { method, json, key: tokenOf(tenant) });
const add = async (text: string, tenant = 'north') =>
  (await send(tenant, 'POST', '', { text })).json;
const change = (id: number, version: number, text: string) =>
  send('north', 'PATCH', `/${id}`, { version, text });
const remove = (id: number) => send('north', 'DELETE', `/${id}`);

const closed: Array<() => void> = [];
afterEach(() => {
  for (const close of closed.splice(0)) close();
});
/** A way to the service that can be cut. */
async function wayToStore() {
  const proxy = new TcpProxy(new URL(store.origin));
  await proxy.open();
  closed.push(() => proxy.cut());
  const { origin } = new URL(proxy.url);
  const again = async () => {
    proxy.cut();
    await proxy.open();
  };
  return { origin, again };
}

test('EventSource follows changes and a live list of them, and resumes by itself', async () => {
  const way = await wayToStore();
  const headers = { authorization: `Bearer ${tokenOf('north')}` };
  const follow = (path: string) => {
    const source = new EventSource(way.origin + path, {
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...init.headers, ...headers } }),
    });
    closed.push(() => source.close());
    const events: Array<[string, any]> = [];
    for (const name of ['message', 'added', 'changed', 'removed'])
      source.addEventListener(name, ({ data }: MessageEvent) => {
        events.push([name, JSON.parse(data)]);
      });
    return events;
  };
  const changes = follow('/v1/changes?collection=files&after=0');
  const files = follow('/v1/files?follow=all&after=0');
  const first = await add('first');
  await add('of another', 'south');
  await eventually(async () => files.length === 1 && changes.length === 1);
  await way.again();
  await change(first.id, 1, 'second');
  await eventually(async () => files.length === 2 && changes.length === 2);
  await way.again();
  await remove(first.id);
  const last = await add('last');
  await eventually(async () => files.length === 4 && changes.length === 4);
  expect(files).toEqual([
    ['added', first],
    ['changed', { ...first, text: 'second', version: 2 }],
    ['removed', { id: first.id }],
    ['added', last],
  ]);
  expect(changes.map(([, { action, itemId }]) => [action, itemId])).toEqual([
    ['created', first.id],
    ['changed', first.id],
    ['removed', first.id],
    ['created', last.id],
  ]);
});

test('@apollo/client follows changes, keeps items up to date, and continues after the last one', async () => {
  const way = await wayToStore();
  const headers = { authorization: `Bearer ${tokenOf('north')}` };
  const link = new HttpLink({ uri: `${way.origin}/graphql`, headers });
  const apollo = new ApolloClient({ link, cache: new InMemoryCache() });
  closed.push(() => apollo.stop());
  const item = await add('first');
  const seen: any[] = [];
  const follow = (query: string, onData = (_: any) => {}) =>
    new Promise<unknown>((failed) => {
      const live = apollo.subscribe({ query: gql(query) });
      const followed = live.subscribe(({ data, error }) =>
        data ? onData(data) : failed(error),
      );
      closed.push(() => followed.unsubscribe());
    });
  const changesAfter = (after: string) =>
    follow(
      `subscription { changeAdded(collection: "files", after: "${after}") { id action itemId before after actor } }`,
      ({ changeAdded }) => seen.push(changeAdded),
    );
  const items = 'subscription { fileChanged(after: "0") { id version text } }';
  const first = changesAfter('0');
  void follow(items);
  await change(item.id, 1, 'second');
  const isSecond = ({ itemId, action }: any) =>
    itemId === `${item.id}` && action === 'changed';
  await eventually(async () => seen.some(isSecond));
  const cached = () => apollo.cache.extract() as Record<string, unknown>;
  const name = `File:${item.id}`;
  await eventually(async () => name in cached());
  expect(cached()[name]).toMatchObject({ version: 2, text: 'second' });
  await way.again();
  expect(await first).toBeInstanceOf(Error);
  await remove(item.id);
  void changesAfter(seen.at(-1).id);
  await eventually(async () => seen.at(-1).action === 'removed');
  const own = seen.filter(({ itemId }) => itemId === `${item.id}`);
  expect(own).toMatchObject([
    { action: 'created', before: null, after: { text: 'first' } },
    {
      action: 'changed',
      before: { text: 'first' },
      after: { text: 'second' },
      actor: 'subject:ada',
    },
    { action: 'removed', before: { text: 'second' }, after: null },
  ]);
});
