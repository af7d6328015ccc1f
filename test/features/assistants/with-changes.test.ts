import { ledgersModule } from '../../modules/ledgers/ledgers.module.ts';
import { sql } from '../../support/database-access.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { openEvents, rpc } from './mcp.ts';

/** MCP Events of collections with a trace are their changes. */

const store = storeForAll({ MCP: 'true' }, undefined, {
  more: [ledgersModule],
});
const poll = async (name: string, cursor: string | null, more = {}) => {
  const { json } = await rpc(store, 'events/poll', { name, cursor, ...more });
  return json.result ?? json.error;
};
const ask = async (method: string, path: string, json?: object) =>
  (await rest(store, `/v1${path}`, { method, json })).json;

test('an item is added, changed and removed, in one order', async () => {
  const { cursor } = await poll('entries.added', null);
  const entry = { title: 'tea', amount: '1', number: 9007199254740993n };
  const { id } = await ask('POST', '/entries', entry);
  await ask('PATCH', `/entries/${id}`, { title: 'cake', version: 1 });
  await ask('DELETE', `/entries/${id}`);
  const added = await poll('entries.added', cursor);
  const changed = await poll('entries.changed', cursor);
  const removed = await poll('entries.removed', cursor);
  expect(added.events).toEqual([
    {
      eventId: expect.stringMatching(/^changes_\d+$/),
      name: 'entries.added',
      timestamp: added.events[0].data.at,
      data: expect.objectContaining({ itemId: `${id}`, action: 'created' }),
    },
  ]);
  expect(changed.events.map(({ data }: any) => data.after)).toEqual([
    { title: 'cake' },
  ]);
  expect(removed.events.map(({ data }: any) => data.action)).toEqual([
    'removed',
  ]);
  // All have read as far.
  expect(changed.cursor).toBe(added.cursor);
  expect(removed.cursor).toBe(added.cursor);
});

test('changes of one item are asked for by its id', async () => {
  const { cursor } = await poll('entries.changed', null);
  const ids: number[] = [];
  for (const title of ['one', 'two']) {
    const entry = { title, amount: '1', number: 1 };
    const { id } = await ask('POST', '/entries', entry);
    await ask('PATCH', `/entries/${id}`, { amount: '2', version: 1 });
    ids.push(id);
  }
  const itemId = `${ids[1]}`;
  const more = { arguments: { itemId } };
  const { events } = await poll('entries.changed', cursor, more);
  expect(events.map(({ data }: any) => data.itemId)).toEqual([itemId]);
});

test('events that are too old are left out, and that is told', async () => {
  const { cursor } = await poll('entries.added', null);
  const entry = { title: 'old', amount: '1', number: 2 };
  await ask('POST', '/entries', entry);
  // Its time and this one may be of one millisecond.
  await new Promise((later) => setTimeout(later, 20));
  const old = await poll('entries.added', cursor, { maxAgeMs: 1 });
  expect(old).toMatchObject({ events: [], truncated: true });
  const all = await poll('entries.added', cursor, { maxAgeMs: 3_600_000 });
  expect(all).toMatchObject({ truncated: false });
  expect(all.events).toHaveLength(1);
});

test('the collection is no argument', async () => {
  const more = { arguments: { collection: 'letters' } };
  expect(await poll('entries.added', '0', more)).toMatchObject({
    code: -32602,
  });
});

describe('changes that are no longer kept', () => {
  const write = (path: string, title: string) =>
    ask('POST', path, { title, amount: '1', number: 1, text: title });
  const forget = () => sql(store.database, 'delete from change');
  const name = 'entries.added';

  test('are told once to a poll', async () => {
    const { cursor } = await poll(name, null);
    await write('/entries', 'lost');
    await forget();
    const after = await poll(name, cursor);
    expect(after).toMatchObject({ events: [], truncated: true });
    await write('/entries', 'kept');
    const next = await poll(name, after.cursor);
    expect(next.truncated).toBe(false);
    expect(next.events.map(({ data }: any) => data.after.title)).toEqual([
      'kept',
    ]);
    const again = await poll(name, cursor);
    expect(again).toMatchObject({ events: next.events, truncated: true });
  });

  test('are told to a stream', async () => {
    const { cursor } = await poll(name, null);
    await write('/entries', 'lost again');
    await forget();
    await write('/entries', 'kept again');
    const leaving = new AbortController();
    const next = await openEvents(store, { name, cursor }, leaving.signal);
    const first = await next();
    expect(first).toMatchObject({
      method: 'notifications/events/active',
      params: { truncated: true },
    });
    expect((await next()).params.data.after.title).toBe('kept again');
    leaving.abort();
  });

  test('are not told to who has asked since', async () => {
    await write('/entries', 'first');
    let { cursor } = await poll(name, null);
    for (const text of ['a', 'b']) {
      // Of another collection.
      await write('/memos', text);
      const quiet = await poll(name, cursor);
      expect(quiet).toMatchObject({ events: [], truncated: false });
      cursor = quiet.cursor;
      await forget();
    }
    expect(await poll(name, cursor)).toMatchObject({ truncated: false });
  });
});
