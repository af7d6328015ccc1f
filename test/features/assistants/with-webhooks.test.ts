import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { sql } from '../../support/database-access.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { Receiver, verified } from '../webhooks/receiver.ts';
import { post, rpc } from './mcp.ts';

/** MCP Events by webhook: subscriptions of hosts (SEP-3415). */

const env = { MCP: 'true', WEBHOOKS: 'true', WEBHOOKS_LOCAL: 'true' };
const store = storeForAll(env, undefined, { more: [ledgersModule] });
const receiver = new Receiver();
beforeAll(() => receiver.open());
afterAll(() => receiver.close());

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const secret = newSecret();
/** An endpoint that echoes the challenge, and takes events. */
const echo = (response: ServerResponse, message: any) =>
  response.writeHead(200).end(JSON.stringify({ challenge: message.challenge }));
beforeEach(() => {
  receiver.reset();
  receiver.answer = echo;
});
afterEach(() => sql(store.database, 'delete from webhook'));

const asked = async (method: string, params: object, key = store.key) => {
  const { json } = await rpc({ origin: store.origin, key }, method, params);
  return json.result ?? json.error;
};
const subscribe = (more = {}, key = store.key) =>
  asked(
    'events/subscribe',
    {
      name: 'pets.added',
      arguments: {},
      delivery: { mode: 'webhook', url: receiver.url, secret },
      ...more,
    },
    key,
  );
const add = async (name: string, status = 'available') => {
  const json = { name, categoryId: 9007199254740993n, status };
  return (await rest(store, '/v1/pets', { method: 'POST', json })).json;
};
const isEvent = ({ type }: { type?: string }) => type !== 'verification';
const eventsAt = async (count: number) => {
  const { length } = receiver.distinct.filter((one) => !isEvent(one));
  return (await receiver.until(count + length)).filter(isEvent) as any[];
};

test('a host is asked for its consent, and then gets signed events in order', async () => {
  const { events } = await asked('events/list', {});
  expect(events[0].delivery).toContain('webhook');
  const { id, ...granted } = await subscribe();
  expect(id).toMatch(/^sub_[0-9a-f]{32}$/);
  expect(granted).toEqual({
    refreshBefore: expect.stringMatching(/Z$/),
    cursor: expect.stringMatching(/^\d+$/),
    truncated: false,
  });
  const [asking] = receiver.messages as any[];
  expect(JSON.parse(asking.body)).toEqual({
    type: 'verification',
    challenge: expect.any(String),
  });
  expect(asking.id).toMatch(/^msg_verification_/);
  verified(secret, asking);
  const rex = await add('Rex');
  await add('Tom');
  const [first, second] = await eventsAt(2);
  expect(verified(secret, first)).toEqual({
    eventId: `pets_${rex.id}`,
    name: 'pets.added',
    timestamp: expect.stringMatching(/Z$/),
    data: {
      id: `${rex.id}`,
      name: 'Rex',
      categoryId: '9007199254740993',
      status: 'available',
    },
    cursor: `${rex.id}`,
  });
  expect(first.headers).toMatchObject({
    'webhook-id': `pets_${rex.id}`,
    'x-mcp-subscription-id': id,
  });
  expect(second.data.name).toBe('Tom');
});

test('the events are those of the filter, after the cursor', async () => {
  const { cursor } = await asked('events/poll', { name: 'pets.added' });
  await add('Rex');
  await add('Tom', 'sold');
  await subscribe({ cursor, arguments: { status: 'sold' } });
  const [tom] = await eventsAt(1);
  expect(tom.data.name).toBe('Tom');
});

test('changes of a collection with a trace are sent, of the asked kind only', async () => {
  await subscribe({ name: 'entries.changed' });
  const json = { title: 'tea', amount: '1', number: 1 };
  const { id } = (await rest(store, '/v1/entries', { method: 'POST', json }))
    .json;
  const change = { title: 'cake', version: 1 };
  await rest(store, `/v1/entries/${id}`, { method: 'PATCH', json: change });
  const [changed] = await eventsAt(1);
  expect(changed).toMatchObject({
    name: 'entries.changed',
    data: { itemId: `${id}`, after: { title: 'cake' } },
  });
});

test('a host is told that changes after its cursor are no longer kept', async () => {
  const write = async (title: string) => {
    const json = { title, amount: '1', number: 1 };
    await rest(store, '/v1/entries', { method: 'POST', json });
  };
  const { cursor } = await asked('events/poll', { name: 'entries.added' });
  await write('lost');
  const forget = () => sql(store.database, 'delete from change');
  await forget();
  await write('kept');
  const entries = { name: 'entries.added', cursor };
  expect(await subscribe(entries)).toMatchObject({ truncated: true });
  const [kept] = await eventsAt(1);
  expect(kept.data.after.title).toBe('kept');
  // The next ones are not lost, however long nothing happens.
  await eventually(async () => (await subscribe(entries)).truncated === false);
  await forget();
  expect(await subscribe(entries)).toMatchObject({ truncated: false });
});

test('a host that wants no old events begins now', async () => {
  const { cursor } = await asked('events/poll', { name: 'entries.added' });
  const json = { title: 'old', amount: '1', number: 1 };
  await rest(store, '/v1/entries', { method: 'POST', json });
  await new Promise((later) => setTimeout(later, 20));
  const young = { name: 'entries.added', cursor, maxAgeMs: 1 };
  expect(await subscribe(young)).toMatchObject({ truncated: true });
  await rest(store, '/v1/entries', {
    method: 'POST',
    json: { ...json, title: 'new' },
  });
  const [event] = await eventsAt(1);
  expect(event.data.after.title).toBe('new');
});

test('a release without subscriptions sends nothing to one', async () => {
  await subscribe();
  // Of its sender: an endpoint needs a key that is valid, or none of ours.
  const statement = `
    select webhook.id from webhook
      left join api_key on api_key.id = (caller ->> 'id')::int
    where (caller ->> 'id')::int < 1 or revoked_at is null
      and coalesce(expires_at > now(), api_key.id is not null)`;
  expect(await sql(store.database, statement)).toEqual([]);
});

describe('a repetition', () => {
  test('renews the subscription, and asks the endpoint for nothing', async () => {
    const first = await subscribe({ ttlMs: 60_000 });
    const second = await subscribe({ ttlMs: 3_600_000 });
    expect(second.id).toBe(first.id);
    expect(Date.parse(second.refreshBefore)).toBeGreaterThan(
      Date.parse(first.refreshBefore) + 3_000_000,
    );
    expect(receiver.messages).toHaveLength(1);
    const rows = await sql(store.database, 'select id from webhook');
    expect(rows).toHaveLength(1);
  });

  test('at the same time is one subscription', async () => {
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => subscribe()));
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set([all[0].id]));
    const rows = await sql(store.database, 'select id from webhook');
    expect(rows).toHaveLength(1);
    await add('Rex');
    await eventsAt(1);
  });

  test('with another secret signs by both', async () => {
    await subscribe();
    const later = newSecret();
    const delivery = { mode: 'webhook', url: receiver.url, secret: later };
    await subscribe({ delivery });
    await add('Rex');
    const [event] = await eventsAt(1);
    verified(secret, event);
    verified(later, event);
  });

  test('with other arguments, or of another key, is another subscription', async () => {
    const { key } = await store.keys.issue({ name: 'b', scope: 'write' });
    const ids = [
      await subscribe(),
      await subscribe({ arguments: { status: 'sold' } }),
      await subscribe({}, key),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    // Of each key once.
    expect(receiver.messages).toHaveLength(2);
  });
});

test('a life is at least a minute, and at most a week', async () => {
  const lives: number[] = [];
  for (const ttlMs of [0, null, 9_999_999_999]) {
    const { refreshBefore } = await subscribe({ ttlMs });
    lives.push(Math.round((Date.parse(refreshBefore) - Date.now()) / 60_000));
  }
  expect(lives).toEqual([1, 1440, 10_080]);
});

test('a subscription that is not renewed ends', async () => {
  await subscribe();
  const past = "update webhook set until = now() - interval '1 s'";
  await sql(store.database, past);
  await add('Rex');
  await subscribe({ name: 'entries.added' });
  const json = { title: 'last', amount: '1', number: 1 };
  await rest(store, '/v1/entries', { method: 'POST', json });
  const [event] = await eventsAt(1);
  expect(event.name).toBe('entries.added');
  const rows = await sql(store.database, 'select types from webhook');
  expect(rows).toHaveLength(1);
});

test('unsubscribe ends it at once', async () => {
  await subscribe();
  const place = {
    name: 'pets.added',
    arguments: {},
    delivery: { url: receiver.url },
  };
  expect(await asked('events/unsubscribe', place)).toEqual({});
  const rows = await sql(store.database, 'select id from webhook');
  expect(rows).toEqual([]);
  expect(await asked('events/unsubscribe', place)).toMatchObject({
    code: -32011,
    data: { kind: 'subscription' },
  });
});

test('unsubscribe of another key ends nothing', async () => {
  await subscribe();
  const { key } = await store.keys.issue({ name: 'c', scope: 'write' });
  const place = { name: 'pets.added', delivery: { url: receiver.url } };
  expect(await asked('events/unsubscribe', place, key)).toMatchObject({
    code: -32011,
  });
  const rows = await sql(store.database, 'select id from webhook');
  expect(rows).toHaveLength(1);
});

describe('an endpoint is refused that', () => {
  const refused = async (reason: string) => {
    expect(await subscribe()).toMatchObject({
      code: -32015,
      data: { reason },
    });
    const rows = await sql(store.database, 'select id from webhook');
    expect(rows).toEqual([]);
  };

  test('does not echo the challenge', async () => {
    receiver.answer = (response) => response.writeHead(204).end();
    await refused('challenge_failed');
  });

  test('echoes another one', async () => {
    receiver.answer = (response) =>
      response.writeHead(200).end('{"challenge":"other"}');
    await refused('challenge_failed');
  });

  test.each([
    [404, 'http_4xx'],
    [500, 'http_5xx'],
    [302, 'challenge_failed'],
  ])('answers %i', async (status, reason) => {
    receiver.answer = (response, message: any) =>
      response
        .writeHead(status, { location: receiver.url })
        .end(JSON.stringify({ challenge: message.challenge }));
    await refused(reason);
    expect(receiver.messages).toHaveLength(1);
  });

  test('is not there', async () => {
    await receiver.close();
    try {
      await refused('connection_refused');
    } finally {
      await receiver.open();
    }
  });
});

test.each([
  ['no secret', { delivery: { url: 'http://127.0.0.1:1/' } }, /secret/],
  [
    'a short secret',
    { delivery: { url: 'http://127.0.0.1:1/', secret: 'whsec_c2hvcnQ=' } },
    /24 to 64 bytes/,
  ],
  [
    'a padded secret',
    {
      delivery: {
        url: 'http://127.0.0.1:1/',
        secret: secret.padEnd(2000, '='),
      },
    },
    /24 to 64 bytes/,
  ],
  ['no address', { delivery: { url: 'hook', secret } }, /url must/],
  [
    'a long address',
    { delivery: { url: `http://127.0.0.1:1/${'x'.repeat(2000)}`, secret } },
    /url must be at most 2000 characters/,
  ],
  [
    'a long filter',
    { name: 'entries.added', arguments: { actor: 'x'.repeat(2000) } },
    /actor must be at most/,
  ],
  ['another mode', { delivery: { mode: 'mail', url: 'a', secret } }, /mode/],
  ['a wrong filter', { arguments: { status: 'lost' } }, /status must/],
  ['an unknown filter', { arguments: { colour: 'red' } }, /unknown/],
  ['a wrong cursor', { cursor: 'abc' }, /after must/],
])('%s is refused', async (_title, more, message) => {
  expect(await subscribe(more)).toMatchObject({
    code: -32602,
    message: expect.stringMatching(message),
  });
  expect(receiver.messages).toEqual([]);
});

test('a number that a client may have rounded is refused', async () => {
  const delivery = { mode: 'webhook', url: receiver.url, secret };
  const params = { name: 'entries.added', delivery, arguments: { itemId: 0 } };
  const message = { jsonrpc: '2.0', id: 7, method: 'events/subscribe', params };
  const body = JSON.stringify(message).replace(':0}', ':9007199254740993}');
  const { json } = await post(store, body);
  expect(json.error).toMatchObject({
    code: -32602,
    message: expect.stringContaining('itemId must be text'),
  });
  expect(receiver.messages).toEqual([]);
});

test('a key needs the scopes of webhooks and of the list', async () => {
  for (const scope of ['pets:read', 'webhooks:write']) {
    const { key } = await store.keys.issue({ name: scope, scope });
    expect(await subscribe({}, key)).toMatchObject({ code: -32012 });
  }
  expect(receiver.messages).toEqual([]);
});

test('a revoked key ends its subscription', async () => {
  const issued = { name: 'd', scope: 'pets:read webhooks:write' };
  const { key, id } = await store.keys.issue(issued);
  await subscribe({}, key);
  await store.keys.revoke(id);
  const delivery = { mode: 'webhook', url: receiver.url, secret: newSecret() };
  await subscribe({ delivery });
  await add('Rex');
  const [event] = await eventsAt(1);
  verified(delivery.secret, event);
  const ofOther = receiver.distinct.filter(isEvent);
  expect(ofOther).toHaveLength(1);
});

/** A key that has this many endpoints. */
async function keyWith(count: number) {
  const { key, id } = await store.keys.issue({ name: 'e', scope: 'write' });
  await subscribe({}, key);
  const more = `
    insert into webhook (url, types, owner, key, caller)
    select url, types, owner, key, caller from webhook,
      generate_series(2, ${count}) where owner = 'key:${id}'`;
  await sql(store.database, more);
  return key;
}

test('a caller has at most 100 endpoints', async () => {
  const key = await keyWith(100);
  const sold = { arguments: { status: 'sold' } };
  expect(await subscribe(sold, key)).toMatchObject({
    code: -32013,
    data: { limit: 'subscriptions', max: 100 },
  });
  expect(await subscribe({}, key)).toMatchObject({ truncated: false });
});

test('several at once take the last place once', async () => {
  const key = await keyWith(99);
  const states = ['sold', 'pending', 'available'];
  const answers = await Promise.all(
    states.map((status) => subscribe({ arguments: { status } }, key)),
  );
  const codes = answers.flatMap(({ code }) => code ?? []);
  expect(codes).toEqual([-32013, -32013]);
});
