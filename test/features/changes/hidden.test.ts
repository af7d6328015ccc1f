import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const text = (description: string) =>
  Type.Optional(nullable(textSchema({ maxLength: 255, description })));
const deposit = resource({
  name: 'Deposit',
  description: 'What somebody has left.',
  path: '/deposits',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  follow: 'all',
  members: {
    label: textSchema({ description: 'What it is.' }),
    note: text('What staff think.'),
    holder: text('Whose it is.'),
  },
  audiences: [
    { scope: 'deposits', rows: { holder: 'subject' }, hides: ['note'] },
    {
      scope: 'pets',
      rows: { holder: 'subject' },
      hides: ['note', 'holder'],
    },
    { scope: 'tellers', rows: {} },
  ],
  trace: true,
});
const DepositEntity = defineEntity({
  name: 'Deposit',
  tableName: 'deposit',
  properties: deposit.columns,
  indexes: [{ properties: ['holder', 'id'] }],
});
const depositsModule: Module = {
  tag: { name: 'Deposits', description: 'Deposits.' },
  entities: [DepositEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_02_000000_create_deposit', [
      'create table deposit (id bigserial primary key, label text not null, note text, holder text, version int not null default 1)',
      'create index on deposit (holder, id)',
    ]),
  ],
  open({ database }) {
    type Item = ItemOf<typeof deposit>;
    const records = new Records<Item, NewOf<typeof deposit>>(
      database,
      DepositEntity,
      deposit.lists,
    );
    return { resources: [deposit.serve(records)] };
  },
};
const tellersModule: Module = {
  tag: { name: 'Tellers', description: 'Staff.' },
  open: () => ({}),
};
const more = [depositsModule, tellersModule];
const store = storeForAll({}, undefined, { more });

test('a change has no member that its caller does not see in the row, on both APIs', async () => {
  const keyOf = async (scope: string) => store.keys.issue({ name: 'x', scope });
  const ada = await keyOf('deposits:write changes:read');
  const all = await keyOf('deposits:write tellers:write changes:read');
  const ask = (key: string, method: string, path: string, json?: object) =>
    rest(store, `/v1${path}`, { method, key, json });
  const deposited = async (holder: string) => {
    const input = { label: 'bag', note: 'smells', holder };
    const { json } = await ask(all.key, 'POST', '/deposits', input);
    const change = { version: 1, note: 'smells badly', label: 'box' };
    await ask(all.key, 'PATCH', `/deposits/${json.id}`, change);
    await ask(all.key, 'DELETE', `/deposits/${json.id}`);
    return json.id;
  };
  const newest = await ask(
    all.key,
    'GET',
    '/changes?sort=id_desc&collection=deposits',
  );
  const [last] = newest.json;
  await deposited(`key:${ada.id}`);
  await deposited(`key:${all.id}`);
  const holder = `key:${ada.id}`;
  const shown = [
    { before: null, after: { label: 'bag', holder } },
    { before: { label: 'bag' }, after: { label: 'box' } },
    { before: { label: 'box', holder }, after: null },
  ];
  const { json } = await ask(ada.key, 'GET', '/changes');
  expect(json).toMatchObject(shown);
  expect(JSON.stringify(json)).not.toContain('smells');
  const query = '{ changes { before after } }';
  const { data } = await graphqlText(store, { query }, ada.key);
  expect(data.changes).toEqual(shown);
  for (const body of [
    undefined,
    { query: 'subscription { changeAdded(after: 0) { before after } }' },
  ]) {
    const rest = { method: 'GET', path: '/v1/changes?after=0' };
    const request = body ? { body } : rest;
    const stream = await openStream(store, { ...request, key: ada.key });
    const events = await stream.until(3);
    const seen = events.map(({ data }) => data.data?.changeAdded ?? data);
    expect(seen).toMatchObject(shown);
    expect(stream.text).not.toContain('smells');
    stream.close();
  }
  const path = `/changes?collection=deposits&after=${last?.id ?? 0}`;
  const every = await ask(all.key, 'GET', path);
  const notes = every.json.map(({ before, after }: any) => [
    before?.note,
    after?.note,
  ]);
  const ofOne = [
    [undefined, 'smells'],
    ['smells', 'smells badly'],
    ['smells badly', undefined],
  ];
  expect(notes).toEqual([...ofOne, ...ofOne]);
});

test('a live list of changes has no member that its caller does not see', async () => {
  const ada = await store.keys.issue({
    ...{ name: 'x', scope: 'deposits:write changes:read' },
  });
  const staff = await store.keys.issue({
    ...{ name: 'x', scope: 'deposits:write tellers:write' },
  });
  const ask = (method: string, path: string, json: object) =>
    rest(store, `/v1${path}`, { method, key: staff.key, json });
  const field = 'depositChanged { id label note }';
  const live = await Promise.all(
    [
      { method: 'GET', path: '/v1/deposits?follow=all' },
      { body: { query: `subscription { ${field} }` } },
      { body: { query: 'subscription { depositAdded { id note label } }' } },
    ].map((one) => openStream(store, { ...one, key: ada.key })),
  );
  const input = { label: 'urn', note: 'smells', holder: `key:${ada.id}` };
  const { json } = await ask('POST', '/deposits', input);
  const change = { version: 1, label: 'vase', note: 'smells badly' };
  await ask('PATCH', `/deposits/${json.id}`, change);
  const [all, changed, added] = live as [any, any, any];
  await all.until(2);
  await changed.until(1);
  await added.until(1);
  for (const stream of live) {
    expect(stream.text).toMatch(/urn|vase/);
    expect(stream.text).not.toContain('smells');
    stream.close();
  }
});

test('a row that is handed over is removed for one who does not see its owner', async () => {
  const issue = (scope: string) => store.keys.issue({ name: 'x', scope });
  const ada = await issue('pets:read');
  const staff = await issue('deposits:write tellers:write');
  const ask = (method: string, path: string, json: object) =>
    rest(store, `/v1${path}`, { method, key: staff.key, json });
  const path = '/v1/deposits?follow=all';
  const all = await openStream(store, { method: 'GET', path, key: ada.key });
  const input = { label: 'urn', holder: `key:${ada.id}` };
  const { json } = await ask('POST', '/deposits', input);
  await all.until(1);
  await ask('PATCH', `/deposits/${json.id}`, { version: 1, holder: 'key:0' });
  const [, event] = await all.until(2);
  expect(event).toMatchObject({ event: 'removed', data: { id: json.id } });
  expect(all.text).not.toContain('holder');
  all.close();
});
