// runs: embedded, postgres

import type { ServerResponse } from 'node:http';
import { openModules } from '#engine/api/module.js';
import { Unavailable } from '#engine/errors.js';
import { importLines } from '#engine/features/transfer/import.js';
import { statesIn } from '#engine/features/webhooks/states.js';
import { UniqueSubscription } from '#engine/features/webhooks/unique-subscription.js';
import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { overtaken, sql, withRows } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { startNode, storeForAll } from '../../support/store.ts';
import { Receiver, verified } from './receiver.ts';

const env = { WEBHOOKS: 'true', WEBHOOKS_LOCAL: 'true' };
const store = storeForAll(env, undefined, { more: [ledgersModule] });
const receiver = new Receiver();
const other = new Receiver();
const keys = { ada: '', bob: '', blind: '' };
const ids: Record<string, number> = {};
beforeAll(async () => {
  await receiver.open();
  await other.open();
  const scopes = {
    ada: 'write',
    bob: 'ledgers:write changes:read webhooks:write',
    blind: 'webhooks:write',
  };
  for (const [name, scope] of Object.entries(scopes)) {
    const { id, key } = await store.keys.issue({ name, scope });
    keys[name as 'ada'] = key;
    ids[name] = id;
  }
});
afterAll(async () => {
  await receiver.close();
  await other.close();
});
beforeEach(() => {
  for (const one of [receiver, other]) one.reset();
});
afterEach(() => sql(store.database, 'delete from webhook'));

const ask = (
  method: string,
  path: string,
  json?: object,
  key = store.key,
  headers = {},
) => rest(store, `/v1${path}`, { method, json, key, headers });
const endpoint = async (
  types: string[],
  { url } = receiver,
  key = store.key,
  more = {},
) => (await ask('POST', '/webhooks', { url, types, ...more }, key)).json;
const stateOf = async ({ id }: { id: number }) =>
  (await ask('GET', `/webhooks/${id}`)).json;

let title = 0;
const addEntry = async () => {
  title += 1;
  const entry = { title: `e ${title}`, amount: '1', number: title };
  return (await ask('POST', '/entries', entry)).json;
};
const addEntries = async (count: number) => {
  const titles: string[] = [];
  for (let at = 0; at < count; at += 1) titles.push((await addEntry()).title);
  return titles;
};
const titlesIn = ({ distinct }: Receiver) =>
  distinct.map(({ data }) => data.after.title);
/** Lets the pause before the next attempt end. */
const hurry = () => sql(store.database, 'update webhook set retry_at = now()');

test('changes are sent in order, signed, with their positions as ids', async () => {
  const types = ['entries.added', 'entries.changed', 'entries.removed'];
  const newest = await ask('GET', '/changes?sort=id_desc&limit=1');
  const begin = newest.json[0]?.id ?? 0;
  const made = await ask('POST', '/webhooks', { url: receiver.url, types });
  expect([made.status, made.json]).toEqual([
    201,
    {
      id: expect.any(Number),
      url: receiver.url,
      types,
      position: begin,
      owner: 'key:1',
      secret: expect.stringMatching(/^whsec_[\w+/]{43}=$/),
      state: 'active',
      deliveries: [],
      version: 1,
    },
  ]);
  const number = 9223372036854775807n;
  const entry = { title: 'first', amount: '1', number };
  const { json } = await ask('POST', '/entries', entry);
  await ask('PATCH', `/entries/${json.id}`, { version: 1, number: 2 });
  await ask('DELETE', `/entries/${json.id}`);
  const messages = await receiver.until(3);
  expect(messages.map(({ type }) => type)).toEqual(types);
  const changes = await ask('GET', `/changes?after=${begin}`);
  for (const [at, message] of messages.entries()) {
    verified(made.json.secret, message);
    const { id, at: timestamp } = changes.json[at];
    expect([message.id, message.timestamp]).toEqual([
      `changes_${id}`,
      timestamp,
    ]);
    expect(message.data).toEqual(changes.json[at]);
  }
  expect(messages[0]?.body).toContain(`"number":${number}`);
  const { id: position } = changes.json[2];
  await eventually(
    async () => (await stateOf(made.json)).position === position,
  );
  const now = await stateOf(made.json);
  expect([now.secret, now.version, now.deliveries.length]).toEqual([
    null,
    1,
    3,
  ]);
  expect(now.deliveries[0]).toEqual({
    id: messages[2]?.id,
    type: 'entries.removed',
    at: expect.any(String),
    ms: expect.any(Number),
    status: 204,
  });
});

test('additions to a collection without a trace are sent, with their ids as positions', async () => {
  const { secret } = await endpoint(['pets.added']);
  const pet = { name: 'Rex', categoryId: 9007199254740993n };
  const { json } = await ask('POST', '/pets', pet);
  const [message] = await receiver.until(1);
  expect(message).toMatchObject({ id: `pets_${json.id}`, type: 'pets.added' });
  expect(message?.data).toEqual(json);
  verified(secret, message as never);
});

test('an endpoint begins after what is stored, or at its position', async () => {
  const [first, ...others] = await addEntries(3);
  const { json } = await ask('GET', '/changes?sort=id_desc&limit=3');
  await endpoint(['entries.added']);
  await endpoint(['entries.added'], other, store.key, {
    position: json[2].id,
  });
  const later = await addEntries(1);
  await other.until(3);
  await receiver.until(1);
  expect(titlesIn(other)).toEqual([...others, ...later]);
  expect(titlesIn(receiver)).toEqual(later);
  expect(titlesIn(other)).not.toContain(first);
});

test('only types of its endpoint are sent', async () => {
  const made = await endpoint(['entries.removed', 'memos.added']);
  const { id } = await addEntry();
  await ask('PATCH', `/entries/${id}`, { version: 1, number: 7 });
  await ask('DELETE', `/entries/${id}`);
  await addEntry();
  const { json } = await ask('POST', '/memos', { text: 'mine' });
  await receiver.until(2);
  expect(
    receiver.messages.map(({ type, data }) => [type, data.itemId]),
  ).toEqual([
    ['entries.removed', id],
    ['memos.added', json.id],
  ]);
  // What it does not ask for moves its position, too.
  const { id: last } = await addEntry();
  const { json: changes } = await ask('GET', '/changes?sort=id_desc&limit=1');
  expect(changes[0].itemId).toBe(last);
  await eventually(
    async () => (await stateOf(made)).position === changes[0].id,
  );
});

test.each([
  [['entries.sold']],
  [['entries']],
  [['unknown.added']],
  [['webhooks.added']],
  [['pets.changed']],
  [['pets.added', 'entries.added']],
  [['pets.added', 'pets.added']],
  [['.added']],
  [['entries.added', 'pets.added']],
  [['entries.changed', 'unknown.changed']],
  [[]],
])('types %j are refused', async (types) => {
  const { status, json } = await ask('POST', '/webhooks', {
    url: receiver.url,
    types,
  });
  expect([status, json.code]).toEqual([400, 'BAD_USER_INPUT']);
});

test('a caller needs the scopes of what it is sent, and of webhooks', async () => {
  const asked = (types: string[], key: string) =>
    ask('POST', '/webhooks', { url: receiver.url, types }, key);
  const reader = await store.keys.issue({ name: 'reader', scope: 'read' });
  const statuses = [
    await asked(['entries.added'], keys.blind),
    await asked(['pets.added'], keys.blind),
    await asked(['pets.added'], keys.bob),
    await asked(['entries.added'], reader.key),
    await asked(['entries.added'], keys.bob),
  ].map(({ status }) => status);
  expect(statuses).toEqual([403, 403, 403, 403, 201]);
});

test('an endpoint belongs to its caller, and gets what its caller may read', async () => {
  const types = ['memos.added', 'memos.removed'];
  const ofAda = await endpoint(types, receiver, keys.ada);
  const ofBob = await endpoint(types, other, keys.bob);
  const write = (text: string, key: string) =>
    ask('POST', '/memos', { text }, key);
  const { json } = await write('of ada', keys.ada);
  await write('of bob', keys.bob);
  await ask('DELETE', `/memos/${json.id}`, undefined, keys.ada);
  await write('last of bob', keys.bob);
  await receiver.until(2);
  await other.until(2);
  expect(receiver.messages.map(({ data }) => data.itemId)).toEqual([
    json.id,
    json.id,
  ]);
  expect(other.messages.map(({ data }) => data.after.text)).toEqual([
    'of bob',
    'last of bob',
  ]);
  const path = `/webhooks/${ofAda.id}`;
  const found = await ask('GET', path, undefined, keys.bob);
  const changed = await ask(
    'PATCH',
    path,
    { version: 1, url: other.url },
    keys.bob,
  );
  const removed = await ask('DELETE', path, undefined, keys.bob);
  const tested = await ask('POST', `${path}/test`, undefined, keys.bob);
  const all = [found, changed, removed, tested].map(({ status }) => status);
  expect(all).toEqual([404, 404, 404, 404]);
  const { json: list } = await ask('GET', '/webhooks', undefined, keys.bob);
  expect(list.map(({ id }: any) => id)).toEqual([ofBob.id]);
});

test('an endpoint of a revoked or expired key gets nothing', async () => {
  const issued = await store.keys.issue({ name: 'gone', scope: 'write' });
  const soon = await store.keys.issue({ name: 'soon', scope: 'write' });
  await endpoint(['entries.added'], receiver, issued.key);
  await endpoint(['entries.added'], receiver, soon.key);
  await endpoint(['entries.added'], other);
  await store.keys.revoke(issued.id);
  const expire = `update api_key set expires_at = now() - interval '1 s' where id = $1`;
  await sql(store.database, expire, [soon.id]);
  await addEntries(2);
  await other.until(2);
  await addEntries(1);
  await other.until(3);
  expect(receiver.messages).toEqual([]);
});

test('an endpoint of a bootstrap key that is no longer set gets nothing', async () => {
  const key = 'bootstrap-key-of-an-earlier-start';
  const node = await startNode(store, { ...env, BOOTSTRAP_API_KEY: key });
  const json = { url: receiver.url, types: ['entries.added'] };
  const request = { method: 'POST', key, json };
  const { status } = await rest(node, '/v1/webhooks', request);
  await node.close();
  await sql(
    store.database,
    `insert into webhook (url, types, position, owner, key, caller)
      select url, types, position, owner, key, jsonb_build_object('host', caller)
      from webhook`,
  );
  await sql(store.database, 'delete from webhook_lease');
  await endpoint(['entries.added'], other);
  await addEntries(1);
  await other.until(1);
  await addEntries(1);
  await other.until(2);
  expect([status, receiver.messages]).toEqual([201, []]);
});

test('an event is sent again until it is answered; those after it wait', async () => {
  const made = await endpoint(['entries.added']);
  let status = 500;
  receiver.answer = (response) =>
    response.writeHead(status, { location: other.url }).end();
  const titles = await addEntries(3);
  for (status of [500, 302, 404]) {
    await hurry();
    await eventually(async () => {
      const { deliveries, state } = await stateOf(made);
      return state === 'failing' && deliveries[0].status === status;
    });
    expect(titlesIn(receiver)).toEqual(titles.slice(0, 1));
  }
  status = 204;
  await hurry();
  await receiver.until(3);
  expect(titlesIn(receiver)).toEqual(titles);
  expect(other.messages).toEqual([]);
  await eventually(async () => (await stateOf(made)).state === 'active');
});

test('pauses grow to an hour', async () => {
  const made = await endpoint(['entries.added']);
  receiver.answer = (response) => response.writeHead(500).end();
  await addEntry();
  for (const attempts of [0, 1, 5, 11, 12, 70]) {
    const set = 'update webhook set attempts = $1, retry_at = now()';
    await sql(store.database, set, [attempts]);
    const asked = `
      select extract(epoch from retry_at - now()), attempts from webhook where id = $1`;
    let [pause, stored] = [0, 0];
    await eventually(async () => {
      const [row = []] = await sql(store.database, asked, [made.id]);
      [pause = 0, stored = 0] = row.map(Number);
      return stored > attempts;
    });
    expect(pause).toBeLessThanOrEqual(Math.min(2 ** (stored - 1), 3600));
    if (attempts > 11) expect(pause).toBeGreaterThan(2048);
  }
});

test('after three days without an answer an endpoint is off, until it is changed', async () => {
  const made = await endpoint(['entries.added']);
  receiver.answer = (response) => response.writeHead(503).end();
  const titles = await addEntries(2);
  await eventually(async () => (await stateOf(made)).state === 'failing');
  const move = (days: number) =>
    sql(
      store.database,
      `update webhook set retry_at = now(), failed_at = now() - interval '${days} days'`,
    );
  await move(2.9);
  await eventually(async () => (await stateOf(made)).deliveries.length > 1);
  expect((await stateOf(made)).state).toBe('failing');
  await move(3.1);
  await eventually(async () => (await stateOf(made)).state === 'off');
  expect(await statesIn(store.database)).toEqual([
    [0, 'active'],
    [0, 'failing'],
    [1, 'off'],
  ]);
  const sent = receiver.messages.length;
  await hurry();
  await endpoint(['entries.added'], other);
  const last = await addEntry();
  await other.until(1);
  expect(receiver.messages).toHaveLength(sent);
  receiver.answer = (response) => response.writeHead(204).end();
  const { json } = await ask('POST', `/webhooks/${made.id}/test`);
  expect([json.state, json.id]).toEqual(['active', made.id]);
  await receiver.until(4);
  const [test, ...later] = receiver.messages.slice(sent);
  expect(test?.type).toBe('webhooks.test');
  expect(later.map(({ data }) => data.after.title)).toEqual([
    ...titles,
    last.title,
  ]);
});

test('both secrets sign for a day', async () => {
  const { id, secret } = await endpoint(['entries.added']);
  const { json } = await ask('POST', `/webhooks/${id}/rotate`);
  expect(json.secret).not.toBe(secret);
  await addEntry();
  const [message] = await receiver.until(1);
  verified(secret, message as never);
  verified(json.secret, message as never);
  expect(message?.headers['webhook-signature']?.split(' ')).toHaveLength(2);
  const end =
    'update webhook set previous_until = now(), version = version + 1';
  await sql(store.database, end);
  await addEntry();
  const [, second] = await receiver.until(2);
  expect(() => verified(secret, second as never)).toThrow(
    'No matching signature found',
  );
  verified(json.secret, second as never);
});

test('a position sends what follows it again', async () => {
  const made = await endpoint(['entries.added']);
  const titles = await addEntries(3);
  await receiver.until(3);
  const [first] = receiver.messages;
  const position = Number(first?.id.slice('changes_'.length));
  const { status } = await ask('PATCH', `/webhooks/${made.id}`, {
    version: 1,
    position,
  });
  expect(status).toBe(200);
  await eventually(async () => receiver.messages.length === 5);
  const all = receiver.messages.map(({ data }) => data.after.title);
  expect(all).toEqual([...titles, ...titles.slice(1)]);
});

test('what is removed while it is read sends nothing again', async () => {
  await store.empty();
  const add = `insert into pet (name, category_id, status)
    select 'Rex', 1, 'available' from generate_series(1, $1) returning id::text`;
  const added = await sql<[string]>(store.database, add, [101]);
  const [beyond] = added.at(-1) ?? [];
  receiver.answer = async (response) => {
    const isLast = receiver.messages.length === 100;
    const remove = 'delete from pet where id = $1';
    if (isLast) await sql(store.database, remove, [beyond]);
    response.writeHead(204).end();
  };
  const position = Number(added[0]?.[0]) - 1;
  const made = await endpoint(['pets.added'], receiver, store.key, {
    position,
  });
  await receiver.until(100);
  await eventually(
    async () => `${(await stateOf(made)).position}` === added[99]?.[0],
  );
  await sql(store.database, add, [1]);
  await receiver.until(101);
  expect(receiver.messages).toHaveLength(101);
});

test('an event whose endpoint is read while it is sent is sent once', async () => {
  const claimed = Promise.withResolvers<void>();
  receiver.answer = async (response) => {
    await claimed.promise;
    response.writeHead(204).end();
  };
  const made = await endpoint(['entries.added']);
  const position = async () => (await stateOf(made)).position;
  const before = await position();
  let isHeld = false;
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      const found = await rows(statement, values);
      const isClaim = statement.name === 'claim_webhooks';
      if (isClaim && !isHeld && receiver.messages.length > 0) {
        isHeld = true;
        claimed.resolve();
        // The turn ends, with another position than the one that was read.
        await eventually(async () => (await position()) !== before);
        await sql(store.database, 'select 1');
      }
      return found as never;
    },
    async () => {
      await addEntry();
      await eventually(async () => isHeld && (await position()) !== before);
      await addEntry();
      await eventually(async () => receiver.distinct.length === 2);
    },
  );
  expect(receiver.messages).toHaveLength(2);
});

test('an endpoint that is stored is answered, though it cannot be read then', async () => {
  const made = await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (statement.name === 'find_one_webhook') throw Unavailable.late();
      return rows(statement, values) as never;
    },
    () => endpoint(['entries.added']),
  );
  await addEntry();
  const [message] = await receiver.until(1);
  verified(made.secret, message as never);
});

test('a position cannot be cleared', async () => {
  const { id } = await endpoint(['entries.added']);
  const change = { version: 1, position: null };
  const { status } = await ask('PATCH', `/webhooks/${id}`, change);
  expect(status).toBe(400);
});

test('types whose events have other positions need one', async () => {
  const { id } = await endpoint(['pets.added']);
  const entries = { types: ['entries.added'] };
  const all = { types: ['entries.added', 'memos.changed'] };
  const pets = { types: ['pets.added'] };
  const statuses: unknown[] = [];
  for (const change of [
    pets,
    entries,
    { ...entries, position: 0 },
    all,
    pets,
    { ...pets, position: 0 },
  ]) {
    const { version } = await stateOf({ id });
    const more = { ...change, version };
    statuses.push((await ask('PATCH', `/webhooks/${id}`, more)).status);
  }
  expect(statuses).toEqual([200, 400, 200, 200, 400, 200]);
  const query = `mutation { changeWebhook(id: "${id}", change: { version: 5, types: ["entries.added"] }) { id } }`;
  const { errors } = await graphqlText(store, { query });
  expect(errors?.[0]?.message).toBe(
    'position must be given, because that of these types is another one.',
  );
});

test('a caller has at most 100 endpoints', async () => {
  await endpoint(['entries.added'], receiver, keys.ada);
  await sql(
    store.database,
    `insert into webhook (url, types, position, owner, key, caller, is_off)
      select url, types, position, owner, key, caller, true
      from webhook, generate_series(1, 98)`,
  );
  const types = ['entries.added'];
  const add = (key: string, headers = {}) =>
    ask('POST', '/webhooks', { url: receiver.url, types }, key, headers);
  const statuses = [
    await add(keys.ada, { 'idempotency-key': 'last' }),
    await add(keys.ada, { 'idempotency-key': 'last' }),
    await add(keys.ada),
    await add(keys.bob),
  ].map(({ status }) => status);
  expect(statuses).toEqual([201, 201, 400, 201]);
  await sql(store.database, 'delete from idempotency_key');
});

test('several at once take the last place once', async () => {
  const made = await endpoint(['entries.added'], receiver, keys.ada);
  await sql(
    store.database,
    `insert into webhook (url, types, position, owner, key, caller, is_off)
      select url, types, position, owner, key, caller, true
      from webhook, generate_series(1, 98)`,
  );
  const added = await Promise.all(
    Array.from({ length: 8 }, () =>
      endpoint(['entries.added'], receiver, keys.ada),
    ),
  );
  expect(added.filter(({ id }) => id > made.id)).toHaveLength(1);
});

test('an endpoint whose address another caller changes gets what that one may read', async () => {
  const scope = 'webhooks:write webhooks:all';
  const { key } = await store.keys.issue({ name: 'manager', scope });
  const made = await endpoint(['entries.added']);
  await ask(
    'PATCH',
    `/webhooks/${made.id}`,
    { version: 1, url: other.url },
    key,
  );
  await addEntry();
  await eventually(async () => (await stateOf(made)).state === 'failing');
  expect((await stateOf(made)).deliveries[0].error).toContain('changes:read');
  expect(other.messages).toEqual([]);
});

test('an endpoint whose address another caller sends back keeps its rights', async () => {
  const scope = 'webhooks:write webhooks:all';
  const { key } = await store.keys.issue({ name: 'manager', scope });
  const made = await endpoint(['entries.added']);
  const change = { version: 1, url: made.url };
  const { status } = await ask('PATCH', `/webhooks/${made.id}`, change, key);
  expect(status).toBe(200);
  const titles = await addEntries(1);
  await receiver.until(1);
  expect(titlesIn(receiver)).toEqual(titles);
});

test('an endpoint that is moved meanwhile does not lend its rights to whom sends its first address', async () => {
  const scope = 'webhooks:write webhooks:all';
  const { key } = await store.keys.issue({ name: 'manager', scope });
  const made = await endpoint(['entries.added']);
  const move = `update webhook set url = '${other.url}', version = 2 where id = ${made.id}`;
  const change = { version: 2, url: made.url };
  const send = () => ask('PATCH', `/webhooks/${made.id}`, change, key);
  const { status } = await overtaken(
    store.database,
    move,
    send,
    /^find_webhook/,
  );
  expect(status).toBe(200);
  await addEntry();
  await eventually(async () => (await stateOf(made)).state === 'failing');
  expect(receiver.messages).toEqual([]);
});

test('of subscriptions that an earlier release added twice the first one stays', async () => {
  await sql(store.database, 'drop index webhook_subscription_unique');
  const made = [await endpoint(['entries.added'])];
  made.push(await endpoint(['entries.added']));
  await sql(store.database, "update webhook set subscription = 'one'");
  const migration = new UniqueSubscription({} as never, {} as never);
  migration.up();
  for (const query of migration.getQueries())
    await sql(store.database, `${query}`);
  const rows = await sql(store.database, 'select id from webhook');
  expect(rows).toEqual([[`${made[0].id}`]]);
});

test('an import adds endpoints of the operator only', async () => {
  const { database, modules } = store;
  const on = { WEBHOOKS: true, WEBHOOKS_LOCAL: true };
  const collection = openModules(modules, database, on)
    .flatMap(({ collections = [] }) => collections)
    .find(({ name }) => name === 'webhooks');
  const refused: unknown[] = [];
  async function* lines() {
    for (const owner of [`key:${ids.bob}`, 'ada', undefined]) {
      const input = { url: other.url, types: ['entries.added'], owner };
      yield { line: 1, input };
    }
  }
  const transfer = {
    collection,
    progress: () => undefined,
    refused: (...one: unknown[]) => refused.push(one),
    signal: AbortSignal.timeout(60_000),
  };
  const { failure } = await importLines(lines(), transfer as never);
  expect(failure).toBeUndefined();
  const owners = await sql(database, 'select owner from webhook');
  expect([refused.length, owners]).toEqual([2, [['key:0']]]);
});

test('what fails for all endpoints is not logged for each', async () => {
  for (const one of [receiver, other, receiver])
    await endpoint(['entries.added'], one);
  const { log } = store.app;
  const { warn } = log;
  const warned: unknown[] = [];
  log.warn = ((...line: unknown[]) => warned.push(line)) as never;
  let refused = 0;
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (!statement.text.includes('from "change"'))
        return rows(statement, values) as never;
      refused += 1;
      throw new Unavailable('test');
    },
    () => eventually(async () => refused > 3),
  ).finally(() => {
    log.warn = warn;
  });
  expect(warned).toEqual([]);
});

test('an endpoint whose events cannot be read waits longer each time', async () => {
  const made = await endpoint(['entries.added']);
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (statement.text.includes('from "change"')) throw new Error('secret');
      return rows(statement, values) as never;
    },
    () => eventually(async () => (await stateOf(made)).state === 'failing'),
  );
  const [{ error }] = (await stateOf(made)).deliveries;
  expect(error).toBe('The service failed to answer this request.');
});

test('a slow endpoint holds up no other', async () => {
  const slow: ServerResponse[] = [];
  receiver.answer = (response) => slow.push(response);
  await endpoint(['entries.added']);
  await endpoint(['entries.added'], other);
  const titles = await addEntries(20);
  await other.until(20);
  expect(titlesIn(other)).toEqual(titles);
  expect(receiver.distinct).toHaveLength(1);
  receiver.answer = (response) => response.writeHead(204).end();
  for (const response of slow) response.writeHead(204).end();
  await receiver.until(20);
  expect(titlesIn(receiver)).toEqual(titles);
});

test('after the restart of an endpoint it goes on where it stood', async () => {
  const made = await endpoint(['entries.added']);
  const before = await addEntries(2);
  await receiver.until(2);
  await receiver.close();
  const missed = await addEntries(3);
  await eventually(async () => (await stateOf(made)).state === 'failing');
  const [delivery] = (await stateOf(made)).deliveries;
  expect(delivery.error).toMatch(/ECONN|hang up/);
  await receiver.open();
  await hurry();
  await receiver.until(5);
  expect(titlesIn(receiver)).toEqual([...before, ...missed]);
});

test('an endless answer is read in part only', async () => {
  const made = await endpoint(['entries.added']);
  let isClosed = false;
  receiver.answer = (response) => {
    response.writeHead(200);
    const piece = Buffer.alloc(65_536);
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more).on('close', () => {
      isClosed = true;
    });
    more();
  };
  await addEntry();
  await eventually(async () => isClosed);
  await eventually(async () => (await stateOf(made)).deliveries.length === 1);
  expect((await stateOf(made)).deliveries[0].status).toBe(200);
});

test('of two nodes one sends; another one takes over when it is dead', async () => {
  const node = await startNode(store, env);
  try {
    await endpoint(['entries.added']);
    const both = [store, node];
    const add = (at: number) => {
      title += 1;
      const json = { title: `n ${title}`, amount: '1', number: 1 };
      const on = both[at % 2] as typeof store;
      return rest(on, '/v1/entries', { method: 'POST', json });
    };
    await Promise.all(Array.from({ length: 40 }, (_, at) => add(at)));
    await receiver.until(40);
    const positions = receiver.distinct.map(({ id }) => Number(id.slice(8)));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    const died = `
      update webhook_lease set holder = 'dead', until = now() + interval '2 s'`;
    await sql(store.database, died);
    await addEntry();
    await receiver.until(41);
    const [[holder] = []] = await sql(
      store.database,
      'select holder from webhook_lease',
    );
    expect(holder).not.toBe('dead');
  } finally {
    await node.close();
  }
});

test('a creation with an idempotency key gets its secret again', async () => {
  const create = () =>
    ask(
      'POST',
      '/webhooks',
      { url: receiver.url, types: ['entries.added'] },
      store.key,
      { 'idempotency-key': 'once' },
    );
  const first = await create();
  await addEntry();
  const again = await create();
  expect(again.json).toEqual(first.json);
  expect((await ask('GET', '/webhooks')).json).toHaveLength(1);
  const stored = await sql<[string]>(
    store.database,
    `select generated[1] from idempotency_key
      where operation = 'createWebhook' order by created_at desc limit 1`,
  );
  const answer = Buffer.from(`${stored[0]}`, 'base64').toString('latin1');
  expect(answer).toContain(receiver.url);
  expect(answer).not.toContain('whsec_');
});

test('a dry run has no secret, with an idempotency key or without', async () => {
  const input = { url: receiver.url, types: ['entries.added'] };
  for (const key of [{}, { 'idempotency-key': 'dry' }]) {
    const headers = { ...key, prefer: 'tx=rollback' };
    const dry = await ask('POST', '/webhooks', input, store.key, headers);
    expect(dry).toMatchObject({ status: 201, json: { secret: null } });
  }
  expect((await ask('GET', '/webhooks')).json).toEqual([]);
  const { id } = await endpoint(input.types);
  const dry = { prefer: 'tx=rollback' };
  const { status, json } = await ask(
    'POST',
    `/webhooks/${id}/rotate`,
    undefined,
    store.key,
    dry,
  );
  expect([status, json.secret]).toEqual([200, null]);
});

test('a creation that is rolled back, and that another node does meanwhile, has the secret that is stored', async () => {
  const { database } = store;
  const { transaction } = database;
  const input = { url: receiver.url, types: ['entries.added'] };
  const create = () =>
    ask('POST', '/webhooks', input, store.key, { 'idempotency-key': 'twice' });
  let stored: any;
  database.transaction = async (call, frame, work) => {
    database.transaction = transaction;
    const conflicting = database.transaction(
      call.continued(),
      { creates: frame.creates },
      async (em) => {
        await work(em);
        throw new Error('a conflict');
      },
    );
    await expect(conflicting).rejects.toThrow('a conflict');
    stored = await create();
    return database.transaction(call, frame, work);
  };
  const { json } = await create();
  expect(json).toEqual(stored.json);
});

test('GraphQL has the same endpoints, without their secrets in lists', async () => {
  const document = `mutation {
    createWebhook(input: { url: "${receiver.url}", types: ["entries.added"] }) { id secret state types }
  }`;
  const { data } = await graphqlText(store, { query: document });
  expect(data.createWebhook).toMatchObject({
    secret: expect.stringContaining('whsec_'),
    state: 'active',
    types: ['entries.added'],
  });
  const list = await graphqlText(store, {
    query: '{ webhooks { id secret position deliveries } }',
  });
  const { id } = data.createWebhook;
  expect(list.data.webhooks).toEqual([
    { id, secret: null, position: expect.any(String), deliveries: [] },
  ]);
});
