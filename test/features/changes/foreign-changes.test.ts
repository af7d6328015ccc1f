// runs: embedded, postgres, pgbouncer, postgres-12, postgres-18

import {
  bookingsModules,
  tags,
} from '../../modules/bookings/bookings.module.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool, openEvents, rpc } from '../assistants/mcp.ts';
import { providerForAll } from '../tokens/provider.ts';
import { Receiver } from '../webhooks/receiver.ts';

/** Eight callers, on every path to changes: nobody sees those of others. */

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    ...{ JWT_TENANT: 'org', JWT_SCOPES: tags, MCP: 'true' },
    ...{ WEBHOOKS: 'true', WEBHOOKS_LOCAL: 'true', GRAPHQL_FEDERATION: 'true' },
  }),
);
const store = storeForAll(env, undefined, { more: bookingsModules });
const tokenOf = (org: string, sub: string, scope: string) =>
  provider.token({ org, sub, scope: `${scope} changes webhooks` });

/** Each row has a label of its own; `b7` is one that ada gives to bob. */
const callers: Record<string, [string, string, string, string]> = {
  'staff a': ['a', 'staff', 'staff', 'b1 b2 b3 b6 b7 b8'],
  'ada a': ['a', 'ada', 'guest', 'b1 b6 p1 p2'],
  'bob a': ['a', 'bob', 'guest', 'b2 b7 b8 p1 p2 p3'],
  'ada of both': ['a', 'ada', 'staff guest', 'b1 b2 b3 b6 b7 b8 p1 p2'],
  'staff b': ['b', 'staff', 'staff', 'b4 b5'],
  'ada b': ['b', 'ada', 'guest', 'b4 p1 p2'],
  'eve a': ['a', 'eve', 'guest', 'p3'],
  'ada of neither': ['a', 'ada', '', ''],
};
const ids: Record<string, string> = {};
const receiver = new Receiver();
afterAll(() => receiver.close());
beforeAll(async () => {
  await receiver.open();
  receiver.reset();
  const [a, b] = [
    tokenOf('a', 'staff', 'staff'),
    tokenOf('b', 'staff', 'staff'),
  ];
  const write = async (
    key: string,
    path: string,
    json: object,
    method: string,
  ) => (await rest(store, `/v1${path}`, { method, key, json })).json;
  const book = async (key: string, label: string, guest?: string) => {
    const json = { label, guest, note: `secret ${label}` };
    const row = await write(key, '/bookings', json, 'POST');
    ids[label] = `collection=bookings&itemId=${row.id}`;
    return row;
  };
  const send = async (sub: string, label: string, recipient: string) => {
    const json = { label, recipient };
    const key = tokenOf('a', sub, 'guest');
    const row = await write(key, '/parcels', json, 'POST');
    ids[label] = `collection=parcels&itemId=${row.id}`;
  };
  await book(a, 'b1', 'ada');
  await book(a, 'b2', 'bob');
  await book(a, 'b3');
  await book(b, 'b4', 'ada');
  await book(b, 'b5', 'bob');
  const { id } = await book(a, 'b6', 'ada');
  const path = `/bookings/${id}`;
  const given = { version: 1, label: 'b7', guest: 'bob', note: 'secret b7' };
  await write(a, path, given, 'PATCH');
  await write(a, path, { version: 2, label: 'b8' }, 'PATCH');
  await send('ada', 'p1', 'bob');
  await send('bob', 'p2', 'ada');
  await send('bob', 'p3', 'eve');
});

const events = ['added', 'changed', 'removed'];
const types = ['bookings', 'parcels'].flatMap((one) =>
  events.map((event) => `${one}.${event}`),
);
const labelsIn = (text: string) =>
  [...new Set(text.match(/\b[bp]\d\b/g))].toSorted().join(' ');

test.each(Object.entries(callers))(
  '%s sees no change of another',
  async (_name, [org, sub, scope, seen]) => {
    const key = tokenOf(org, sub, scope);
    const target = { origin: store.origin, key };
    const answers: string[] = [];
    const get = async (query: string) => {
      const headers = { prefer: 'count=exact' };
      const { text } = await rest(store, `/v1/changes?${query}`, {
        key,
        headers,
      });
      answers.push(text);
      return labelsIn(text);
    };
    const ask = async (query: string) => {
      const { data } = await graphqlText(store, { query }, key);
      answers.push(JSON.stringify(data));
      return labelsIn(JSON.stringify(data));
    };
    const fields = 'itemId before after actor tenant';
    // Those that have all.
    expect(await get('')).toBe(seen);
    expect(await get('sort=id_desc')).toBe(seen);
    expect(await ask(`{ changes { ${fields} } }`)).toBe(seen);
    const nodes = `nodes { ${fields} }`;
    const connection = await ask(
      `{ changesConnection { totalCount ${nodes} } }`,
    );
    expect(connection).toBe(seen);
    const tool = await callTool(target, 'list_changes', {});
    expect(labelsIn(JSON.stringify(tool))).toBe(seen);
    const ofEach = await Promise.all([
      get('collection=bookings'),
      get('collection=parcels'),
    ]);
    expect(labelsIn(ofEach.join(' '))).toBe(seen);
    // Those of what is asked for.
    for (const [label, query] of Object.entries(ids)) {
      const found = await get(query);
      const isSeen = seen.includes(label);
      if (isSeen) expect(found).toContain(label);
      await get(query.replace(/.*&/, ''));
    }
    for (const actor of ['staff', 'ada', 'bob', 'eve'])
      await get(`actor=subject:${actor}`);
    for (const name of types) {
      const { json } = await rpc(target, 'events/poll', { name, cursor: '0' });
      answers.push(JSON.stringify(json));
    }
    // Those that are followed.
    const count = seen === '' ? 0 : seen.split(' ').length;
    const last = seen.slice(-2);
    const follow = async (request: object) => {
      const stream = await openStream(store, { ...request, key });
      for (let at = 1; count > 0 && !stream.text.includes(last); at += 1)
        await stream.until(at);
      stream.close();
      answers.push(stream.text);
      return labelsIn(stream.text);
    };
    expect(await follow({ method: 'GET', path: '/v1/changes?after=0' })).toBe(
      seen,
    );
    const query = `subscription { changeAdded(after: 0) { ${fields} } }`;
    expect(await follow({ body: { query } })).toBe(seen);
    if (scope.includes('guest')) {
      const path = '/v1/parcels?follow=all&after=0';
      await follow({ method: 'GET', path });
    }
    const stop = new AbortController();
    const params = { name: 'bookings.added', cursor: '0' };
    const next = await openEvents(target, params, stop.signal);
    answers.push(JSON.stringify(await next()));
    if (/b/.test(seen)) answers.push(JSON.stringify(await next()));
    stop.abort();
    // Those that are sent.
    receiver.reset();
    const endpoint = { url: receiver.url, types, position: 0 };
    const { json, status } = await rest(store, '/v1/webhooks', {
      ...{ method: 'POST', key, json: endpoint },
    });
    if (status === 201 && count > 0) {
      while (!receiver.messages.some(({ body }) => body.includes(last)))
        await receiver.until(receiver.distinct.length + 1);
      await rest(store, `/v1/webhooks/${json.id}`, { method: 'DELETE', key });
    }
    answers.push(...receiver.messages.map(({ body }) => body));
    const all = answers.join('\n');
    expect(labelsIn(all)).toBe(seen);
    if (!scope.includes('staff'))
      expect(all).not.toMatch(/secret|subject:staff/);
    if (scope.includes('staff')) expect(all).toContain('secret');
  },
);

test('support sees all of a collection that it names', async () => {
  const key = tokenOf('a', 'sue', 'staff support');
  const { text } = await rest(store, '/v1/changes?collection=bookings', {
    key,
  });
  expect(labelsIn(text)).toBe('b1 b2 b3 b4 b5 b6 b7 b8');
  const all = await rest(store, '/v1/changes', { key });
  expect(all.status).toBe(400);
});
