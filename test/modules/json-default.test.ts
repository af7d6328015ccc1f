import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { withDefault } from '#engine/validation/schemas.js';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** GraphQL has no literal for a default of a JSON member. */

const json = Type.Unknown({ description: 'Any.' });
const options = { dark: true };
const setting = resource({
  name: 'Setting',
  description: 'What is set.',
  path: '/settings',
  operations: ['list', 'create'],
  members: {
    options: withDefault(json, options),
    marks: withDefault(json, [1]),
  },
});
const SettingEntity = defineEntity({
  name: 'Setting',
  tableName: 'setting',
  properties: setting.columns,
});
const settings: Module = {
  tag: { name: 'Settings', description: 'All settings.' },
  entities: [SettingEntity],
  migrations: [
    migrationOf('2027_07_01_000000_create_setting', [
      'create table "setting" ("id" bigserial primary key, "options" jsonb not null, "marks" jsonb not null, "version" int not null default 1)',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      setting.serve(
        new Records<any, any>(database, SettingEntity, setting.lists),
      ),
    ],
  }),
};
const store = storeForAll({}, undefined, { more: [settings] });

test('a JSON member has a default that is an object or an array, in both APIs', async () => {
  const { json: added } = await rest(store, '/v1/settings', {
    method: 'POST',
    json: {},
  });
  expect(added).toMatchObject({ options, marks: [1] });
  const query = `mutation($marks: JSON) {
    createSetting(input: { marks: $marks }) { options marks }
  }`;
  // Clients of GraphQL send null for what they leave out.
  for (const variables of [{}, { marks: null }]) {
    const { data } = await graphqlText(store, { query, variables });
    expect(data.createSetting).toEqual({ options, marks: [1] });
  }
});
