import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const account = resource({
  name: 'Account',
  description: 'An account, perhaps of somebody.',
  path: '/accounts',
  operations: ['list', 'find', 'create', 'createMany', 'change', 'remove'],
  members: {
    text: textSchema({ description: 'What it says.' }),
    holder: nullable(textSchema({ maxLength: 255, description: 'Whose.' })),
  },
  audiences: [
    { scope: 'accounts', rows: {} },
    { scope: 'pets', rows: { holder: 'subject' } },
  ],
  trace: true,
});
const AccountEntity = defineEntity({
  name: 'Account',
  tableName: 'account',
  properties: account.columns,
  indexes: [{ properties: ['holder', 'id'] }],
});
/** No caller sees all of its rows. */
const letter = resource({
  name: 'Letter',
  description: 'A letter, which its reader sees.',
  path: '/letters',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: {
    text: textSchema({ description: 'What it says.' }),
    holder: nullable(textSchema({ maxLength: 255, description: 'Whose.' })),
  },
  audiences: [{ scope: 'pets', rows: { holder: 'subject' } }],
  trace: true,
});
const LetterEntity = defineEntity({
  name: 'Letter',
  tableName: 'letter',
  properties: letter.columns,
  indexes: [{ properties: ['holder', 'id'] }],
});
const accountsModule: Module = {
  tag: { name: 'Accounts', description: 'Accounts.' },
  entities: [AccountEntity, LetterEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_01_000000_create_account', [
      'create table account (id bigserial primary key, text text not null, holder text, version int not null default 1)',
      'create index on account (holder, id)',
      'create table letter (id bigserial primary key, text text not null, holder text, version int not null default 1)',
      'create index on letter (holder, id)',
    ]),
  ],
  open({ database }) {
    type Item = ItemOf<typeof account>;
    const records = new Records<Item, NewOf<typeof account>>(
      database,
      AccountEntity,
      account.lists,
    );
    const letters = new Records<Item, NewOf<typeof letter>>(
      database,
      LetterEntity,
      letter.lists,
    );
    return { resources: [account.serve(records), letter.serve(letters)] };
  },
};
const store = storeForAll({}, undefined, { more: [accountsModule] });

const keyOf = async (scope: string) => {
  const { id, key } = await store.keys.issue({ name: 'x', scope });
  return { key, holder: `key:${id}` };
};
const send = (key: string, path: string, json: object, method = 'POST') =>
  rest(store, `/v1${path}`, { method, json, key });
const changesFor = async (key: string, collection: string) => {
  const path = `/v1/changes?collection=${collection}`;
  const { json } = await rest(store, path, { key });
  return json.map(({ action, before, after }: any) => [action, before, after]);
};

test('a row of nobody leaves a trace, for those who see all rows', async () => {
  const { key } = await keyOf('accounts:write changes:read');
  const json = { text: 'of nobody', holder: null };
  const made = await send(key, '/accounts', json);
  expect(made).toMatchObject({ status: 201 });
  const path = `/accounts/${made.json.id}`;
  const change = { version: 1, text: 'other' };
  const changed = await send(key, path, change, 'PATCH');
  expect(changed).toMatchObject({ status: 200 });
  const removed = await rest(store, `/v1${path}`, { method: 'DELETE', key });
  expect(removed).toMatchObject({ status: 204 });
  const batch = await send(key, '/accounts/batch', { inputs: [json, json] });
  expect(batch).toMatchObject({ status: 200 });
  const changes = await changesFor(key, 'accounts');
  expect(changes.slice(-5)).toEqual([
    ['created', null, json],
    ['changed', { text: 'of nobody' }, { text: 'other' }],
    ['removed', { text: 'other', holder: null }, null],
    ['created', null, json],
    ['created', null, json],
  ]);
  const other = await keyOf('pets:read changes:read');
  expect(await changesFor(other.key, 'accounts')).toEqual([]);
});

test('a row that is handed over is seen by both, as what came to the new owner', async () => {
  const staff = await keyOf('accounts:write changes:read');
  const ada = await keyOf('pets:read changes:read');
  const bob = await keyOf('pets:read changes:read');
  const json = { text: 'handed', holder: ada.holder };
  const { json: made } = await send(staff.key, '/accounts', json);
  const path = `/accounts/${made.id}`;
  const hand = async (version: number, holder: string | null) => {
    const change = { version, holder };
    const { status } = await send(staff.key, path, change, 'PATCH');
    expect(status).toBe(200);
  };
  const text = { version: 1, text: 'other' };
  await send(staff.key, path, text, 'PATCH');
  await hand(2, ada.holder);
  await hand(3, bob.holder);
  await hand(4, null);
  await hand(5, bob.holder);
  const ofBob = { text: 'other', holder: bob.holder };
  const given = [{ holder: ada.holder }, { holder: bob.holder }];
  const nobody = { holder: null };
  expect(await changesFor(ada.key, 'accounts')).toEqual([
    ['created', null, json],
    ['changed', { text: 'handed' }, { text: 'other' }],
    ['changed', {}, {}],
    ['changed', { holder: ada.holder }, {}],
  ]);
  expect(await changesFor(bob.key, 'accounts')).toEqual([
    ['created', null, ofBob],
    ['changed', { holder: bob.holder }, {}],
    ['created', null, ofBob],
  ]);
  const all = await changesFor(staff.key, 'accounts');
  expect(all.slice(-6)).toEqual([
    ['changed', {}, {}],
    ['changed', ...given],
    ['created', null, ofBob],
    ['changed', { holder: bob.holder }, nobody],
    ['changed', nobody, { holder: bob.holder }],
    ['created', null, ofBob],
  ]);
});

test('rights of changes are those of the rows, by each audience', async () => {
  const ada = await keyOf('pets:write changes:read');
  const bob = await keyOf('write all');
  await send(ada.key, '/letters', { text: 'to ada', holder: ada.holder });
  await send(bob.key, '/letters', { text: 'to bob', holder: bob.holder });
  const ofBob = [['created', null, { text: 'to bob', holder: bob.holder }]];
  expect(await changesFor(ada.key, 'letters')).toEqual([
    ['created', null, { text: 'to ada', holder: ada.holder }],
  ]);
  expect(await changesFor(bob.key, 'letters')).toEqual(ofBob);
  const { json } = await rest(store, '/v1/letters', { key: bob.key });
  expect(json).toMatchObject([{ text: 'to bob' }]);
  const own = await keyOf('accounts:write changes:read');
  expect(await changesFor(own.key, 'letters')).toEqual([]);
});
