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
  operations: ['list', 'find', 'create', 'change', 'remove'],
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
const accountsModule: Module = {
  tag: { name: 'Accounts', description: 'Accounts.' },
  entities: [AccountEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_01_000000_create_account', [
      'create table account (id bigserial primary key, text text not null, holder text, version int not null default 1)',
      'create index on account (holder, id)',
    ]),
  ],
  open({ database }) {
    type Item = ItemOf<typeof account>;
    const records = new Records<Item, NewOf<typeof account>>(
      database,
      AccountEntity,
      account.lists,
    );
    return { resources: [account.serve(records)] };
  },
};
const store = storeForAll({}, undefined, { more: [accountsModule] });

test('a row of nobody leaves a trace, for those who see all rows', async () => {
  const keyOf = async (scope: string) =>
    (await store.keys.issue({ name: 'x', scope })).key;
  const key = await keyOf('accounts:write changes:read');
  const json = { text: 'of nobody', holder: null };
  const made = await rest(store, '/v1/accounts', { method: 'POST', json, key });
  expect(made).toMatchObject({ status: 201 });
  const path = `/v1/accounts/${made.json.id}`;
  const change = { version: 1, text: 'other' };
  const changed = { method: 'PATCH', json: change, key };
  expect(await rest(store, path, changed)).toMatchObject({ status: 200 });
  const removed = await rest(store, path, { method: 'DELETE', key });
  expect(removed).toMatchObject({ status: 204 });
  const read = async (key: string) =>
    (await rest(store, '/v1/changes?collection=accounts', { key })).json;
  expect(await read(key)).toMatchObject([
    { action: 'created', after: json },
    { action: 'changed', before: { text: 'of nobody' } },
    { action: 'removed', before: { text: 'other' } },
  ]);
  expect(await read(await keyOf('pets:read changes:read'))).toEqual([]);
});
