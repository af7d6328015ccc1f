import { Log } from '#engine/runtime/log/log.js';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { onNode, storeForAll } from '../../support/store.ts';
import { openEvents, rpc } from './mcp.ts';

/** MCP Events (SEP-3415), message by message. */

const store = storeForAll({ MCP: 'true' });
beforeEach(() => store.empty());

const asked = async (method: string, params?: object, target = store) =>
  (await rpc(target, method, params)).json;
const poll = async (cursor: string | null, more = {}) =>
  (await asked('events/poll', { name: 'pets.added', cursor, ...more })).result;
const add = async (name: string, status = 'available') => {
  const json = { name, categoryId: 9007199254740993n, status };
  return (await rest(store, '/v1/pets', { method: 'POST', json })).json;
};
const namesIn = ({ events }: any) => events.map(({ data }: any) => data.name);

test('the list has the filters and the payload of each event type', async () => {
  const { events } = (await asked('events/list')).result;
  const pets = events.find(({ name }: any) => name === 'pets.added');
  expect(pets).toEqual({
    name: 'pets.added',
    description: 'One is added to pets.',
    delivery: expect.arrayContaining(['poll']),
    inputSchema: {
      type: 'object',
      properties: { status: expect.objectContaining({ type: 'string' }) },
    },
    payloadSchema: expect.objectContaining({
      properties: expect.objectContaining({
        id: expect.objectContaining({ type: 'string' }),
      }),
    }),
  });
});

test('the service says that it has events', async () => {
  const clientInfo = { name: 'test', version: '1' };
  const begin = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const { capabilities } = (await asked('initialize', begin)).result;
  expect(capabilities.extensions).toEqual({
    'io.modelcontextprotocol/events': {},
  });
});

describe('a poll', () => {
  test('without a cursor begins now, and then continues after each event', async () => {
    await add('before');
    const { cursor, ...quiet } = await poll(null);
    expect(quiet).toMatchObject({
      events: [],
      truncated: false,
      hasMore: false,
      nextPollMs: expect.any(Number),
    });
    const rex = await add('Rex');
    const found = await poll(cursor);
    expect(found.events).toEqual([
      {
        eventId: `pets_${rex.id}`,
        name: 'pets.added',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        data: {
          id: `${rex.id}`,
          name: 'Rex',
          categoryId: '9007199254740993',
          status: 'available',
        },
      },
    ]);
    const again = await poll(found.cursor);
    expect(again).toMatchObject({ events: [], cursor: found.cursor });
    expect(await poll(cursor)).toMatchObject({ cursor: found.cursor });
  });

  test('has as many events as it asks for, and says that there are more', async () => {
    const { cursor } = await poll(null);
    for (const name of ['a', 'b', 'c']) await add(name);
    const first = await poll(cursor, { maxEvents: 2 });
    expect(namesIn(first)).toEqual(['a', 'b']);
    expect(first.hasMore).toBe(true);
    const second = await poll(first.cursor, { maxEvents: 2 });
    expect(namesIn(second)).toEqual(['c']);
    expect(second.hasMore).toBe(false);
    expect(namesIn(await poll(cursor, { maxEvents: 5000 }))).toHaveLength(3);
  });

  test('filters as its arguments say', async () => {
    const filter = { arguments: { status: 'sold' } };
    const { cursor } = await poll(null, filter);
    await add('Rex');
    await add('Tom', 'sold');
    expect(namesIn(await poll(cursor, filter))).toEqual(['Tom']);
  });
});

test.each([
  ['an unknown event', { name: 'pets.gone' }, -32011, /no event/],
  ['no name', {}, -32602, /name/],
  ['an unknown argument', { arguments: { colour: 'red' } }, -32602, /status/],
  ['a place as an argument', { arguments: { after: '1' } }, -32602, /unknown/],
  ['a wrong value', { arguments: { status: 'lost' } }, -32602, /status must/],
  ['a cursor of others', { cursor: 'abc' }, -32602, /after must/],
  ['no events', { cursor: '0', maxEvents: 0 }, -32602, /maxEvents/],
])('%s is refused', async (_title, params, code, message) => {
  const named = Object.keys(params).length > 0 ? { name: 'pets.added' } : {};
  const { error } = await asked('events/poll', { ...named, ...params });
  expect(error).toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});

test('without WEBHOOKS no endpoint can be subscribed', async () => {
  const delivery = { url: 'https://host.example/', secret: 'whsec_' };
  const given = { name: 'pets.added', delivery };
  const { error } = await asked('events/subscribe', given);
  expect(error).toMatchObject({
    code: -32014,
    data: { feature: 'deliveryMode', value: 'webhook' },
  });
});

test('a key without the scope sees no event type and polls none', async () => {
  const scope = 'changes:read';
  const { key } = await store.keys.issue({ name: 'other', scope });
  const other = { ...store, origin: store.origin, key } as typeof store;
  const { events } = (await asked('events/list', {}, other)).result;
  const names = events.map(({ name }: any) => name);
  expect(names).not.toContain('pets.added');
  const { error } = await asked('events/poll', { name: 'pets.added' }, other);
  expect(error).toMatchObject({ code: -32012 });
});

describe('a stream', () => {
  let leaving = new AbortController();
  afterEach(() => {
    leaving.abort();
    leaving = new AbortController();
  });
  const open = (params: object, target = store) =>
    openEvents(target, { name: 'pets.added', ...params }, leaving.signal);
  const _meta = { 'io.modelcontextprotocol/subscriptionId': 's' };

  test('tells where it begins, and then each event', async () => {
    const { cursor } = await poll(null);
    const next = await open({ cursor });
    expect(await next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/events/active',
      params: { cursor, truncated: false, _meta },
    });
    const rex = await add('Rex');
    expect(await next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/events/event',
      params: {
        eventId: `pets_${rex.id}`,
        name: 'pets.added',
        timestamp: expect.any(String),
        data: expect.objectContaining({
          id: `${rex.id}`,
          categoryId: '9007199254740993',
        }),
        cursor: `${rex.id}`,
        _meta,
      },
    });
  });

  test('continues after a cursor, with its filter', async () => {
    const { cursor } = await poll(null);
    await add('Rex');
    await add('Tom', 'sold');
    const next = await open({ cursor, arguments: { status: 'sold' } });
    await next();
    expect((await next()).params.data.name).toBe('Tom');
  });

  test('begins now without a cursor', async () => {
    await add('Rex');
    const next = await open({});
    await next();
    await add('Tom');
    expect((await next()).params.data.name).toBe('Tom');
  });

  test('is refused before it begins', async () => {
    const next = await open({ cursor: 'abc' });
    expect((await next()).error).toMatchObject({ code: -32602 });
    const other = await openEvents(store, { name: 'pets.gone' });
    expect((await other()).error).toMatchObject({ code: -32011 });
  });

  test('ends when its key is revoked', async () => {
    const { key, id } = await store.keys.issue({ name: 'a', scope: 'read' });
    const target = { origin: store.origin, key } as typeof store;
    const next = await open({}, target);
    await next();
    await store.keys.revoke(id);
    expect(await next()).toMatchObject({
      method: 'notifications/events/terminated',
      params: { error: { code: -32012 }, _meta },
    });
    expect(await next()).toMatchObject({ id: 's', result: {} });
    expect(await next()).toBe(undefined);
  });

  test('gives its place back when the client leaves', async () => {
    const next = await open({});
    await next();
    expect(store.app.subscriptions.count).toBe(1);
    leaving.abort();
    await eventually(async () => store.app.subscriptions.count === 0);
  });

  test('is no failure in the log when the client leaves', async () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const log = new Log({ level: 'info', sample: 1 }, { write });
    const use = async (node: typeof store) => {
      // Before the stream begins, whenever that is, and after.
      for (const wait of [1, 2, 5, 10]) {
        const early = new AbortController();
        const opened = openEvents(node, { name: 'pets.added' }, early.signal);
        setTimeout(() => early.abort(), wait);
        await opened.then((next) => next()).catch(() => undefined);
      }
      const next = await open({}, node);
      await next();
      leaving.abort();
      await eventually(async () => node.app.activeRequests.count === 0);
    };
    await onNode(store, { MCP: 'true' }, use as never, { log });
    const levels = lines.map((line) => JSON.parse(line).level);
    expect(lines.join()).toContain('/v1/pets');
    expect(Math.max(...levels)).toBe(30);
  });

  test('is not for earlier revisions', async () => {
    const { error } = await asked('events/stream', { name: 'pets.added' });
    expect(error).toMatchObject({ code: -32601 });
  });
});
