// runs: embedded, postgres, pgbouncer, postgres-12, postgres-18

import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { contracts } from '#engine/process/contracts.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { service } from '../../../src/service.ts';
import {
  bookingsModules,
  tags,
} from '../../modules/bookings/bookings.module.ts';
import { sql } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { serviceOf } from '../../support/service.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool, rpc } from '../assistants/mcp.ts';
import { providerForAll } from '../tokens/provider.ts';
import { Receiver } from '../webhooks/receiver.ts';

/** A trace of rows that two members choose, alone or together. */

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    ...{ JWT_TENANT: 'org', JWT_SCOPES: tags, MCP: 'true' },
    ...{ WEBHOOKS: 'true', WEBHOOKS_LOCAL: 'true' },
  }),
);
const store = storeForAll(env, undefined, { more: bookingsModules });
const tokenOf = (org: string, sub: string, scope = 'guest changes webhooks') =>
  provider.token({ org, sub, scope });
const staffOf = (org: string) =>
  tokenOf(org, 'staff', 'staff changes webhooks');
const ask = async (key: string, method: string, path: string, json?: object) =>
  (await rest(store, `/v1${path}`, { method, key, json })).json;
const add = (key: string, json: object) => ask(key, 'POST', '/bookings', json);
const change = (key: string, { id, version }: any, json: object) =>
  ask(key, 'PATCH', `/bookings/${id}`, { version, ...json });

beforeEach(() => sql(store.database, 'truncate change'));

const told = ({ action, before, after }: any) => [action, before, after];
const changesFor = async (key: string, query = '') =>
  ask(key, 'GET', `/changes${query}`);
const toldTo = async (key: string, query = '') =>
  (await changesFor(key, query)).map(told);

describe('of a tenant, and of a subject in it', () => {
  test('staff see the changes of their tenant, a guest those of its rows, on both APIs', async () => {
    const [ada, staff] = [tokenOf('a', 'ada'), staffOf('a')];
    const one = await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await add(staff, { label: 'of nobody' });
    await add(staff, { label: 'of bob', guest: 'bob' });
    await add(staffOf('b'), { label: 'elsewhere', guest: 'ada' });
    const two = await change(staff, one, { label: 'two', note: 'rude' });
    await change(ada, two, { label: 'three' });
    await ask(staff, 'DELETE', `/bookings/${one.id}`);
    const seen = [
      ['created', null, { label: 'one', guest: 'ada', hotel: 'a' }],
      ['changed', { label: 'one' }, { label: 'two' }],
      ['changed', { label: 'two' }, { label: 'three' }],
      ['removed', { label: 'three', guest: 'ada', hotel: 'a' }, null],
    ];
    const changes = await changesFor(ada);
    expect(changes.map(told)).toEqual(seen);
    const query = '{ changes { action before after actor tenant } }';
    const { data } = await graphqlText(store, { query }, ada);
    expect(data.changes.map(told)).toEqual(seen);
    // Who did it is hidden where `changedBy` is.
    for (const one of [...changes, ...data.changes])
      expect(one).toMatchObject({ actor: null, tenant: null });
    const all = await changesFor(staff);
    expect(all.map(({ action, actor }: any) => [action, actor])).toEqual([
      ['created', 'subject:staff'],
      ['created', 'subject:staff'],
      ['created', 'subject:staff'],
      ['changed', 'subject:staff'],
      ['changed', 'subject:ada'],
      ['removed', 'subject:staff'],
    ]);
    expect(all[3].after).toEqual({ label: 'two', note: 'rude' });
    expect(await toldTo(tokenOf('a', 'eve'))).toEqual([]);
    expect(await toldTo(tokenOf('c', 'ada'))).toEqual([]);
    expect(await toldTo(tokenOf('a', 'ada', 'changes'))).toEqual([]);
    const elsewhere = await toldTo(tokenOf('b', 'ada'));
    expect(elsewhere).toMatchObject([['created', null, { hotel: 'b' }]]);
  });

  test('a row that is handed over leaves the one, and comes to the other without what it was', async () => {
    const staff = staffOf('a');
    const one = await add(staff, { label: 'old', note: 'n', guest: 'ada' });
    const two = await change(staff, one, { label: 'new', guest: 'bob' });
    const three = await change(staff, two, { label: 'free', guest: null });
    await change(staff, three, { guest: 'bob' });
    const left = { label: 'old', guest: 'ada' };
    const given = { label: 'new', guest: 'bob' };
    const freed = { label: 'free', guest: null };
    const came = ['created', null, { ...given, hotel: 'a' }];
    expect(await toldTo(tokenOf('a', 'ada'))).toEqual([
      ['created', null, { ...left, hotel: 'a' }],
      ['changed', left, {}],
    ]);
    expect(await toldTo(tokenOf('a', 'bob'))).toEqual([
      came,
      ['changed', given, {}],
      ['created', null, { ...given, label: 'free', hotel: 'a' }],
    ]);
    // Staff have seen it all the time.
    expect(await toldTo(staff)).toEqual([
      ['created', null, { ...left, note: 'n', hotel: 'a' }],
      ['changed', left, given],
      ['changed', given, freed],
      ['changed', { guest: null }, { guest: 'bob' }],
    ]);
  });

  test('a caller of both audiences sees each change once, with the members of both', async () => {
    const staff = staffOf('a');
    const one = await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await add(staff, { label: 'two', note: 'dull', guest: 'bob' });
    await change(staff, one, { note: 'rude' });
    const both = tokenOf('a', 'ada', 'staff guest changes');
    expect(await changesFor(both)).toEqual(await changesFor(staff));
    // Support names the collection, and sees how it came to a guest.
    const support = tokenOf('b', 'sue', 'staff support changes');
    const all = await toldTo(support, '?collection=bookings');
    expect(all).toEqual(await toldTo(staff));
  });

  test('who did it is no filter where it is hidden', async () => {
    const [ada, staff] = [tokenOf('a', 'ada'), staffOf('a')];
    const both = tokenOf('a', 'ada', 'staff guest changes');
    const one = await add(staff, { label: 'one', guest: 'ada' });
    const two = await change(ada, one, { label: 'two' });
    for (const actor of ['subject:staff', 'subject:ada']) {
      const query = `?actor=${actor}`;
      expect(await changesFor(ada, query)).toEqual([]);
      expect(await toldTo(staff, query)).toHaveLength(1);
      expect(await toldTo(both, query)).toHaveLength(1);
    }
    const item = `?collection=bookings&itemId=${two.id}`;
    expect(await toldTo(ada, item)).toHaveLength(2);
    expect(await toldTo(tokenOf('a', 'bob'), item)).toEqual([]);
  });

  test('names that look like each other are not, and the longest fit', async () => {
    const longest = '\u{1f43e}'.repeat(127);
    const names = [
      ['a b', 'c'],
      ['a', 'b c'],
      ['a', 'b'],
      [longest, longest],
      [`${longest}x`, longest],
    ] as const;
    for (const [org, guest] of names) {
      const made = await add(staffOf(org), { label: 'x', guest });
      await change(tokenOf(org, guest), made, { label: 'y' });
    }
    for (const [org, guest] of names) {
      const seen = await toldTo(tokenOf(org, guest));
      expect(seen).toEqual([
        ['created', null, { label: 'x', guest, hotel: org }],
        ['changed', { label: 'x' }, { label: 'y' }],
      ]);
    }
  });

  test('rows from before the second audience are for staff', async () => {
    const staff = staffOf('a');
    await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await sql(store.database, 'update change set reader = null');
    expect(await toldTo(tokenOf('a', 'ada'))).toEqual([]);
    expect(await changesFor(staff)).toMatchObject([{ after: { note: 'vip' } }]);
  });

  test('creations of several, and repeated ones, have their readers', async () => {
    const staff = staffOf('a');
    const inputs = ['ada', 'bob', 'ada'].map((guest, at) => {
      return { label: `${at}`, guest };
    });
    await ask(staff, 'POST', '/bookings/batch', { inputs });
    const headers = { 'idempotency-key': 'one' };
    for (const _ of [1, 2])
      await rest(store, '/v1/bookings', {
        ...{ method: 'POST', key: staff, headers },
        json: { label: '3', guest: 'ada' },
      });
    const labels = (await toldTo(tokenOf('a', 'ada'))).map(
      ([, , { label }]: any) => label,
    );
    expect(labels).toEqual(['0', '2', '3']);
  });
});

describe('followed', () => {
  const short = ({ event, data }: any) => [event, data.label ?? data.id];

  test('changes are followed and resumed, on both APIs', async () => {
    const [ada, staff] = [tokenOf('a', 'ada'), staffOf('a')];
    const query = 'subscription { changeAdded { id before after actor } }';
    const requests = [
      { method: 'GET', path: '/v1/changes' },
      { body: { query } },
    ];
    const live = await Promise.all(
      requests.map((one) => openStream(store, { ...one, key: ada })),
    );
    const one = await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await add(staff, { label: 'of bob', guest: 'bob' });
    await add(staffOf('b'), { label: 'elsewhere', guest: 'ada' });
    await change(staff, one, { label: 'two', note: 'rude' });
    for (const [at, stream] of live.entries()) {
      const events = await stream.until(2);
      const seen = events.map(({ data }) => data.data?.changeAdded ?? data);
      expect(seen.map(({ after }) => after.label)).toEqual(['one', 'two']);
      expect(stream.text).not.toMatch(/vip|rude|bob|elsewhere|staff/);
      stream.close();
      const headers = { 'last-event-id': `${events[0]?.id}` };
      const request = { ...requests[at], key: ada, headers };
      const resumed = await openStream(store, request);
      expect(await resumed.until(1)).toEqual(events.slice(1));
      resumed.close();
    }
  });

  test('a live list tells of what comes, changes and leaves, and is resumed', async () => {
    const staff = staffOf('a');
    const open = (key: string, headers = {}) => {
      const path = '/v1/bookings?follow=all';
      return openStream(store, { method: 'GET', path, key, headers });
    };
    const keys = [tokenOf('a', 'ada'), tokenOf('a', 'bob'), staff];
    const live = await Promise.all(keys.map((key) => open(key)));
    const [ofAda, ofBob, ofStaff] = live as [any, any, any];
    const one = await add(staff, { label: 'one', guest: 'ada' });
    await ofAda.until(1);
    await ofStaff.until(1);
    const two = await change(staff, one, { label: 'two', note: 'n' });
    await ofAda.until(2);
    await ofStaff.until(2);
    const three = await change(staff, two, { label: 'three', guest: 'bob' });
    await ofAda.until(3);
    await ofBob.until(1);
    await ofStaff.until(3);
    await ask(staff, 'DELETE', `/bookings/${three.id}`);
    await add(staff, { label: 'end', guest: 'ada' });
    const expected = [
      [ofAda, ['added', 'one'], ['changed', 'two'], ['removed', one.id]],
      [ofBob, ['added', 'three'], ['removed', one.id]],
    ] as const;
    const end = ['added', 'end'];
    const seen = await ofAda.until(4);
    expect(seen.map(short)).toEqual([...expected[0].slice(1), end]);
    expect((await ofBob.until(2)).map(short)).toEqual(expected[1].slice(1));
    expect((await ofStaff.until(5)).map(short)).toEqual([
      ['added', 'one'],
      ['changed', 'two'],
      ['changed', 'three'],
      ['removed', one.id],
      end,
    ]);
    const headers = { 'last-event-id': `${seen[1].id}` };
    const resumed = await open(keys[0] as string, headers);
    expect((await resumed.until(2)).map(short)).toEqual([
      ['removed', one.id],
      end,
    ]);
    for (const stream of [...live, resumed]) {
      if (stream !== ofStaff) expect(stream.text).not.toContain('note');
      stream.close();
    }
  });

  test('a row that changes hands and is removed, while nobody reads, leaves staff once', async () => {
    const staff = staffOf('a');
    const { id } = await add(staff, { label: 'one', guest: 'ada' });
    await change(staff, { id, version: 1 }, { guest: 'bob' });
    await ask(staff, 'DELETE', `/bookings/${id}`);
    await add(staff, { label: 'end', guest: 'ada' });
    const path = '/v1/bookings?follow=all&after=0';
    const stream = await openStream(store, { method: 'GET', path, key: staff });
    const events = await stream.until(2);
    expect(events.map(short)).toEqual([
      ['removed', id],
      ['added', 'end'],
    ]);
    stream.close();
  });

  const receiver = new Receiver();
  beforeAll(() => receiver.open());
  afterAll(() => receiver.close());

  test('endpoints of staff and of guests get what their callers see', async () => {
    receiver.reset();
    const [ada, staff] = [tokenOf('a', 'ada'), staffOf('a')];
    const types = ['bookings.added', 'bookings.changed', 'parcels.added'];
    const endpoint = await ask(ada, 'POST', '/webhooks', {
      url: receiver.url,
      types,
    });
    const one = await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await add(staff, { label: 'of bob', guest: 'bob' });
    await add(staffOf('b'), { label: 'elsewhere', guest: 'ada' });
    await change(staff, one, { label: 'two', note: 'rude' });
    const parcel = { label: 'three', recipient: 'ada' };
    await ask(tokenOf('a', 'bob'), 'POST', '/parcels', parcel);
    const seen = await receiver.until(3);
    expect(seen.map(({ data }) => data.after.label)).toEqual([
      'one',
      'two',
      'three',
    ]);
    expect(seen.map(({ data }) => data.actor)).toEqual([
      null,
      null,
      'subject:bob',
    ]);
    const texts = seen.map(({ body }) => body).join();
    expect(texts).not.toMatch(/vip|rude|of bob|elsewhere|staff/);
    await ask(ada, 'DELETE', `/webhooks/${endpoint.id}`);
  });

  test('assistants list and poll what their caller sees', async () => {
    const staff = staffOf('a');
    await add(staff, { label: 'one', note: 'vip', guest: 'ada' });
    await add(staff, { label: 'of bob', guest: 'bob' });
    const target = { origin: store.origin, key: tokenOf('a', 'ada') };
    const given = { name: 'bookings.added', cursor: '0' };
    const { json } = await rpc(target, 'events/poll', given);
    const tool = await callTool(target, 'list_changes', {});
    const { events } = json.result;
    expect(events.map(({ data }: any) => data.after.label)).toEqual(['one']);
    const answer = JSON.stringify([tool, json]);
    expect(answer).toContain('one');
    expect(answer).not.toMatch(/vip|of bob|staff/);
  });
});

describe('of either member', () => {
  const send = (key: string, json: object) =>
    ask(key, 'POST', '/parcels', json);

  test('both see a row, once, and each what comes and leaves', async () => {
    const [ada, bob, eve] = ['ada', 'bob', 'eve'].map((sub) =>
      tokenOf('a', sub),
    ) as [string, string, string];
    const { id } = await send(ada, { label: 'one', recipient: 'bob' });
    await send(ada, { label: 'to herself', recipient: 'ada' });
    const path = `/parcels/${id}`;
    await ask(ada, 'PATCH', path, { version: 1, recipient: 'eve' });
    const made = { label: 'one', sender: 'ada' };
    const given = [{ recipient: 'bob' }, { recipient: 'eve' }];
    const ofBoth = ['created', null, { ...made, recipient: 'bob' }];
    const left = ['changed', { recipient: 'bob' }, {}];
    expect(await toldTo(bob)).toEqual([ofBoth, left]);
    expect(await toldTo(eve)).toEqual([
      ['created', null, { ...made, recipient: 'eve' }],
    ]);
    const own = { label: 'to herself', sender: 'ada', recipient: 'ada' };
    const seen = [ofBoth, ['created', null, own], ['changed', ...given]];
    expect(await toldTo(ada)).toEqual(seen);
  });

  test('pages of several collections are in one order, forth and back', async () => {
    const [ada, staff] = [tokenOf('a', 'ada'), staffOf('a')];
    const labels = Array.from({ length: 9 }, (_, at) => `${at}`);
    for (const label of labels) {
      const at = Number(label) % 3;
      if (at === 0) await add(staff, { label, guest: 'ada' });
      if (at === 1) await send(ada, { label, recipient: 'bob' });
      if (at === 2)
        await send(tokenOf('b', 'bob'), { label, recipient: 'ada' });
      await add(staff, { label: 'of bob', guest: 'bob' });
    }
    const labelsOf = (all: any[]) => all.map(({ after }) => after.label);
    const seen: any[] = [];
    for (let after = 0; ; after = seen.at(-1).id) {
      const page = await changesFor(ada, `?limit=2&after=${after}`);
      if (page.length === 0) break;
      seen.push(...page);
    }
    expect(labelsOf(seen)).toEqual(labels);
    const last = await changesFor(ada, '?limit=4&sort=id_desc');
    expect(labelsOf(last)).toEqual(['8', '7', '6', '5']);
    const back = await changesFor(ada, `?limit=3&before=${seen[5].id}`);
    expect(labelsOf(back)).toEqual(['2', '3', '4']);
    const query =
      '{ changesConnection(first: 4) { totalCount nodes { after } } }';
    const { data } = await graphqlText(store, { query }, ada);
    expect(data.changesConnection.totalCount).toBe(9);
    expect(labelsOf(data.changesConnection.nodes)).toEqual(labels.slice(0, 4));
    const ofItem = `?itemId=${seen[1].itemId}&collection=parcels`;
    expect(labelsOf(await changesFor(ada, ofItem))).toEqual(['1']);
    // Nothing hides who sent a parcel.
    const ofBob = await changesFor(ada, '?actor=subject:bob');
    expect(labelsOf(ofBob)).toEqual(['2', '5', '8']);
  });
});

test('a start names a third choice of rows', async () => {
  const text = textSchema({ maxLength: 9, description: 'Who.' });
  const shift = resource({
    name: 'Shift',
    description: 'A shift.',
    path: '/shifts',
    operations: ['list'],
    members: { worker: text, deputy: text },
    audiences: [
      { scope: 'shifts', rows: { clinic: 'tenant' } },
      { scope: 'pets', rows: { clinic: 'tenant', worker: 'subject' } },
      { scope: 'store', rows: { deputy: 'subject', clinic: 'tenant' } },
    ],
    trace: true,
  });
  const ShiftEntity = defineEntity({
    name: 'Shift',
    tableName: 'shift',
    properties: shift.columns,
    indexes: [
      { properties: ['clinic', 'id'] },
      { properties: ['clinic', 'worker', 'id'] },
      { properties: ['clinic', 'deputy', 'id'] },
    ],
  });
  const shifts: Module = {
    tag: { name: 'Shifts', description: 'Shifts.' },
    entities: [ShiftEntity],
    keepsChanges: true,
    open({ database }) {
      const records = new Records(database, ShiftEntity, shift.lists as never);
      return { resources: [shift.serve(records as never)] };
    },
  };
  const modules = [...(await service.modules()), shifts];
  await expect(contracts(serviceOf(modules))).rejects.toThrow(
    'shifts has a trace, and rows by clinic; clinic,worker; clinic,deputy: a trace knows two of these, of the row itself.',
  );
});
