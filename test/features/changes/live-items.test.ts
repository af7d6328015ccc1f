import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Call } from '#engine/call.js';
import type { Statement } from '#engine/database/database.js';
import { Unavailable } from '#engine/errors.js';
import { removeOldChanges } from '#engine/features/changes/expiry.js';
import { told } from '#engine/records/live-items.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { sql, withRows } from '../../support/database-access.ts';
import { openStream, type Stream } from '../../support/events.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** `follow: 'all'`: live lists of additions, changes and removals. */

const ticket = resource({
  name: 'Ticket',
  description: 'A ticket.',
  path: '/tickets',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    text: textSchema({ description: 'What it says.' }),
    holder: nullable(textSchema({ maxLength: 255, description: 'Whose.' })),
  },
  audiences: [
    { scope: 'tickets', rows: {} },
    { scope: 'pets', rows: { holder: 'subject' } },
  ],
  trace: { except: ['text'] },
  follow: 'all',
});
const TicketEntity = defineEntity({
  name: 'Ticket',
  tableName: 'ticket',
  properties: ticket.columns,
  indexes: [{ properties: ['holder', 'id'] }],
});
type Ticket = ItemOf<typeof ticket>;
/** For calls in this process. */
let tickets: Records<Ticket, NewOf<typeof ticket>>;
const ticketsModule: Module = {
  tag: { name: 'Tickets', description: 'Tickets.' },
  entities: [TicketEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_04_000000_create_ticket', [
      'create table ticket (id bigserial primary key, text text not null, holder text, version int not null default 1)',
      'create index on ticket (holder, id)',
    ]),
  ],
  open({ database }) {
    tickets = new Records(database, TicketEntity, ticket.lists);
    return { resources: [ticket.serve(tickets)] };
  },
};
const store = storeForAll({}, undefined, { more: [ticketsModule] });
const path = '/v1/tickets';
const streams: Stream[] = [];
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});
const keyOf = async (scope: string) => {
  const { id, key } = await store.keys.issue({ name: 'x', scope });
  return { key, holder: `key:${id}` };
};
const add = async (text: string, holder: string | null = null) =>
  (await rest(store, path, { method: 'POST', json: { text, holder } })).json;
const change = async ({ id, version }: any, json: object) => {
  const method = 'PATCH';
  const body = { version, ...json };
  return (await rest(store, `${path}/${id}`, { method, json: body })).json;
};
const remove = ({ id }: any) =>
  rest(store, `${path}/${id}`, { method: 'DELETE' });
const follow = async (query: string, more: object = {}) => {
  const request = { method: 'GET', path: `${path}${query}`, ...more };
  const stream = await openStream(store, request);
  streams.push(stream);
  return stream;
};
const subscribe = async (field: string, more: object = {}) => {
  const body = { query: `subscription { ${field} }` };
  const stream = await openStream(store, { body, ...more });
  streams.push(stream);
  return stream;
};
const short = ({ event, data }: any) => [event, data];

test('additions, changes and removals are told in order, and resumed', async () => {
  const all = await follow('?follow=all');
  const first = await add('first');
  const second = await add('second');
  await all.until(2);
  const changed = await change(first, { text: 'changed' });
  await remove(second);
  const events = await all.until(4);
  expect(events.map(({ event }) => event)).toEqual([
    'added',
    'added',
    'changed',
    'removed',
  ]);
  expect(events[2]?.data).toEqual(changed);
  expect(events[3]?.data).toEqual({ id: second.id });
  const ids = events.map(({ id }) => Number(id));
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  const after = (ids[0] ?? 0) - 1;
  const query = `?collection=tickets&after=${after}`;
  const { json } = await rest(store, `/v1/changes${query}`);
  expect(json.map(({ id }: any) => id)).toEqual(ids);
  const headers = { 'last-event-id': `${ids[1]}` };
  for (const resumed of [
    await follow('?follow=all', { headers }),
    await follow(`?follow=all&after=${ids[1]}`),
  ])
    expect(await resumed.until(2)).toEqual(events.slice(2));
});

test('a client that knows only additions sees what it saw', async () => {
  const known = await add('known');
  const plain = await follow(`?after=${known.id}`);
  const added = await subscribe('ticketAdded { id text }');
  await change(known, { text: 'changed' });
  await remove(known);
  const next = await add('next');
  const [event] = await plain.until(1);
  expect(event).toEqual({ event: 'message', id: `${next.id}`, data: next });
  const [one] = await added.until(1);
  expect(one).toMatchObject({
    id: `${next.id}`,
    data: { data: { ticketAdded: { id: `${next.id}`, text: 'next' } } },
  });
});

test('subscriptions tell of changes and removals, and resume', async () => {
  const changes = await subscribe('ticketChanged { id text version }');
  const removals = await subscribe('ticketRemoved');
  const first = await add('first');
  const next = await change(first, { text: 'next' });
  const [seen] = await changes.until(1);
  expect(seen?.data.data).toEqual({
    ticketChanged: { id: `${first.id}`, text: 'next', version: 2 },
  });
  await change(next, { text: 'last' });
  await remove(first);
  const [gone] = await removals.until(1);
  expect(gone?.data.data).toEqual({ ticketRemoved: `${first.id}` });
  expect(Number(gone?.id)).toBeGreaterThan(Number(seen?.id));
  const headers = { 'last-event-id': `${seen?.id}` };
  const resumed = await subscribe('ticketRemoved', { headers });
  expect(await resumed.until(1)).toEqual([gone]);
  const after = await subscribe(`ticketRemoved(after: "${seen?.id}")`);
  expect(await after.until(1)).toEqual([gone]);
});

test('a caller is told of its items, also of those that come and go', async () => {
  const ada = await keyOf('pets:read');
  const bob = await keyOf('pets:read');
  const [ofAda, ofBob, ofStaff] = [
    await follow('?follow=all', { key: ada.key }),
    await follow('?follow=all', { key: bob.key }),
    await follow('?follow=all'),
  ];
  const one = await add('one', ada.holder);
  const two = await add('two', bob.holder);
  await ofAda.until(1);
  const handed = await change(one, { holder: bob.holder });
  const end = await add('end', ada.holder);
  expect((await ofAda.until(3)).map(short).slice(1)).toEqual([
    ['removed', { id: one.id }],
    ['added', end],
  ]);
  expect((await ofBob.until(2)).map(short)).toEqual([
    ['added', two],
    ['added', handed],
  ]);
  const names = (await ofStaff.until(4)).map(({ event }) => event);
  expect(names).toEqual(['added', 'added', 'changed', 'added']);
});

test('of many writers, nothing is lost, twice or out of order', async () => {
  const all = await follow('?follow=all');
  const write = async (writer: number) => {
    const one = await add(`writer ${writer}`);
    const next = await change(one, { text: 'next' });
    const last = await change(next, { text: 'last' });
    if (writer % 2 === 0) await remove(last);
    return last;
  };
  const writers = Array.from({ length: 24 }, (_, at) => at);
  const items = await Promise.all(writers.map(write));
  await add('end');
  const isEnd = ({ data }: any) => data.text === 'end';
  let count = 1;
  while (!all.events.some(isEnd)) await all.until(count++);
  const ids = all.events.map(({ id }) => BigInt(`${id}`));
  const ascending = [...new Set(ids)].toSorted((a, b) => (a < b ? -1 : 1));
  expect(ids).toEqual(ascending);
  const of = (name: string) =>
    all.events.filter(({ event }) => event === name).map(({ data }) => data);
  const [removed, stay] = [0, 1].map((rest) =>
    items.filter((_, writer) => writer % 2 === rest),
  );
  const byId = (a: any, b: any) => a.id - b.id;
  expect(of('removed').sort(byId)).toEqual(
    removed?.map(({ id }) => ({ id })).sort(byId),
  );
  for (const item of stay ?? []) {
    const own = of('changed').filter(({ id }) => id === item.id);
    expect(own).toHaveLength(2);
    expect(own[1]).toEqual(item);
  }
});

test('a stream waits until its items can be read', async () => {
  const all = await follow('?follow=all');
  let isRefused = false;
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      const isRefusal = !isRefused && statement.name === 'find_ticket';
      isRefused ||= isRefusal;
      if (isRefusal) throw new Unavailable('test');
      return rows(statement, values) as never;
    },
    async () => {
      const item = await add('late');
      expect((await all.until(1)).map(short)).toEqual([['added', item]]);
    },
  );
  expect(isRefused).toBe(true);
});

const callOf = (holder: string, connection = { destroyed: false }) => {
  const scopes = ['pets:read'];
  const caller = { id: Number(holder.slice(4)), name: 'x', scopes };
  return Object.assign(new Call(1000, connection), { caller });
};

test('a row that comes back is removed, and added again', async () => {
  const [ada, bob] = [await keyOf('pets:read'), await keyOf('pets:read')];
  const one = await add('one', ada.holder);
  const all = tickets.followAll({}, callOf(ada.holder));
  await all.next();
  const away = await change(one, { holder: bob.holder });
  const back = await change(away, { holder: ada.holder });
  const { value } = await all.next();
  await all.return();
  expect(value?.items).toMatchObject([
    { name: 'removed', [told]: one.id },
    { name: 'added', [told]: { version: back.version } },
  ]);
});

test('what is not asked for is no event', async () => {
  const { holder } = await keyOf('pets:read');
  const all = tickets.followAll({}, callOf(holder));
  const removals = tickets.followAll({ only: 'removed' }, callOf(holder));
  for (const one of [all, removals]) await one.next();
  const nexts = [removals.next(), all.next()];
  const one = await add('one', holder);
  // Both read the same page.
  await nexts[1];
  await remove(one);
  expect((await nexts[0])?.value?.items).toMatchObject([{ name: 'removed' }]);
  for (const one of [all, removals]) await one.return();
});

test('a client that leaves before its items can be read ends its live list', async () => {
  const connection = { destroyed: false };
  const { holder } = await keyOf('pets:read');
  const all = tickets.followAll({}, callOf(holder, connection));
  await all.next();
  const next = all.next();
  await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (statement.name !== 'find_ticket')
        return rows(statement, values) as never;
      connection.destroyed = true;
      throw new Unavailable('test');
    },
    async () => {
      await add('unread', holder);
      await expect(next).rejects.toThrow(Unavailable);
    },
  );
});

test('one that begins at a position does not end with the deadline of its request', async () => {
  const { holder } = await keyOf('pets:read');
  const one = await add('one', holder);
  const path = '/v1/changes?collection=tickets&sort=id_desc&limit=1';
  const { json } = await rest(store, path);
  const call = Object.assign(callOf(holder), { deadline: 0 });
  const all = tickets.followAll({ after: `${json[0].id - 1}` }, call);
  await all.next();
  const { value } = await all.next();
  await all.return();
  expect(value?.items).toMatchObject([
    { name: 'added', [told]: { id: one.id } },
  ]);
});

test('the contract says what a removal tells', () => {
  const { paths } = store.app.swagger() as any;
  const { parameters } = paths['/tickets'].get;
  const follow = parameters.find(({ name }: any) => name === 'follow');
  expect(follow.description).toContain('with the `id` only, `removed`');
});

test('it needs a trace', () => {
  const declare = () =>
    resource({
      name: 'Slip',
      description: 'A slip.',
      path: '/slips',
      operations: ['list', 'follow'],
      members: { text: textSchema({ description: 'What it says.' }) },
      follow: 'all',
    });
  expect(declare).toThrow(
    "Slip has follow: 'all', which needs follow and a trace.",
  );
});

test('a position whose next changes have expired is 410, on both APIs', async () => {
  const one = await add('one');
  await change(one, { text: 'next' });
  const { json } = await rest(
    store,
    '/v1/changes?collection=tickets&sort=id_desc&limit=2',
  );
  const [last, first] = json.map(({ id }: any) => id);
  await sql(store.database, 'delete from change where id < $1', [last]);
  const headers = { 'last-event-id': `${first - 1}` };
  const path = '/v1/changes?collection=tickets';
  const request = { method: 'GET', path, headers };
  const failure = expect.objectContaining({ code: 'GONE', status: 410 });
  for (const gone of [
    await openStream(store, request),
    await follow('?follow=all', { headers }),
    await follow(`?follow=all&after=${first - 1}`),
  ])
    expect(await gone.until(1)).toMatchObject([
      { event: 'error', data: failure },
    ]);
  for (const field of [
    'ticketChanged { id }',
    'changeAdded(collection: "tickets") { id }',
  ]) {
    const gone = await subscribe(field, { headers });
    const [event] = await gone.until(2);
    expect(event?.data.errors[0].extensions).toEqual(failure);
  }
  for (const after of [0, first]) {
    const kept = await follow(`?follow=all&after=${after}`);
    expect((await kept.until(1)).map(({ event }) => event)).toEqual([
      'changed',
    ]);
  }
});

test('a position is kept when those that follow it were rolled back', async () => {
  await add('one');
  const old = `update change set at = now() - interval '91 days'`;
  await sql(store.database, old);
  const [[last]] = (await sql<[string]>(
    store.database,
    'select max(id)::text from change',
  )) as [[string]];
  await sql(store.database, `select nextval('change_id_seq')::text`);
  const two = await add('two');
  const rows = (one: Statement, values: unknown[]) =>
    sql(store.database, one.text, values);
  expect(await removeOldChanges({ rows: rows as never }, 90)).toBe(false);
  const kept = await follow(`?follow=all&after=${last}`);
  expect(await kept.until(1)).toMatchObject([
    { event: 'added', data: { id: two.id } },
  ]);
});

test('it takes no filters and no other order, and needs a scope', async () => {
  for (const query of ['?follow=all&before=9', '?follow=some'])
    expect(await follow(query)).toMatchObject({ status: 400 });
  const { key } = await keyOf('orders:read changes:read');
  expect(await follow('?follow=all', { key })).toMatchObject({ status: 403 });
  const { errors } = (await subscribe('ticketRemoved', { key })).events[0]
    ?.data ?? { errors: [{ extensions: { code: 'FORBIDDEN' } }] };
  expect(errors[0].extensions.code).toBe('FORBIDDEN');
});
