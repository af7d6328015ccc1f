import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { enumSchema, nullable, use } from '#engine/validation/schemas.js';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** For a choice the serialiser compiles the whole item. */

const state = enumSchema('ParcelState', { sent: 'sent' }, 'How far it is.');
const parcel = resource({
  name: 'Parcel',
  description: 'A parcel.',
  path: '/parcels',
  operations: ['list', 'create'],
  members: {
    state: nullable(use(state, 'How far it is.')),
    content: nullable(Type.Unknown({ description: 'Anything.' })),
  },
});
const ParcelEntity = defineEntity({
  name: 'Parcel',
  tableName: 'parcel',
  properties: parcel.columns,
});
const parcels: Module = {
  tag: { name: 'Parcels', description: 'All parcels.' },
  entities: [ParcelEntity],
  migrations: [
    migrationOf('2027_07_03_000000_create_parcel', [
      'create table "parcel" ("id" bigserial primary key, "state" text, "content" jsonb, "version" int not null default 1)',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      parcel.serve(new Records<any, any>(database, ParcelEntity, parcel.lists)),
    ],
  }),
};
const store = storeForAll({}, undefined, { more: [parcels] });

test.each([
  [null, null],
  ['sent', { n: [9007199254740993n, 0.1, null] }],
  ['sent', 'text'],
])('a JSON member may be null beside a choice: %j', async (state, content) => {
  const json = { state, content };
  const made = await rest(store, '/v1/parcels', { method: 'POST', json });
  expect([made.status, made.json]).toMatchObject([201, json]);
  const query = '{ parcels { state content } }';
  const { data } = await graphqlText(store, { query });
  expect(data.parcels.at(-1)).toEqual(json);
});
