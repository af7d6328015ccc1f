import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { afterAll, beforeAll, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { Receiver } from './receiver.ts';

const parcel = resource({
  name: 'Parcel',
  description: 'A parcel.',
  path: '/parcels',
  operations: ['list', 'create', 'change'],
  members: {
    holder: nullable(textSchema({ maxLength: 255, description: 'Whose.' })),
  },
  audiences: [
    { scope: 'parcels', rows: {} },
    { scope: 'pets', rows: { holder: 'subject' } },
  ],
  trace: true,
});
const ParcelEntity = defineEntity({
  name: 'Parcel',
  tableName: 'parcel',
  properties: parcel.columns,
  indexes: [{ properties: ['holder', 'id'] }],
});
const parcelsModule: Module = {
  tag: { name: 'Parcels', description: 'Parcels.' },
  entities: [ParcelEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_05_000000_create_parcel', [
      'create table parcel (id bigserial primary key, holder text, version int not null default 1)',
      'create index on parcel (holder, id)',
    ]),
  ],
  open({ database }) {
    const records = new Records<ItemOf<typeof parcel>, NewOf<typeof parcel>>(
      database,
      ParcelEntity,
      parcel.lists,
    );
    return { resources: [parcel.serve(records)] };
  },
};
const env = { WEBHOOKS: 'true', WEBHOOKS_LOCAL: 'true' };
const store = storeForAll(env, undefined, { more: [parcelsModule] });
const receivers = [new Receiver(), new Receiver(), new Receiver()];
beforeAll(async () => {
  for (const one of receivers) await one.open();
});
afterAll(async () => {
  for (const one of receivers) await one.close();
});

test('a row that is handed over is added for its new owner, and only for that one', async () => {
  const scope = 'pets:read changes:read webhooks:write';
  const ada = await store.keys.issue({ name: 'ada', scope });
  const bob = await store.keys.issue({ name: 'bob', scope });
  const types = ['added', 'changed', 'removed'].map((one) => `parcels.${one}`);
  const ask = (method: string, path: string, json: object, key = store.key) =>
    rest(store, `/v1${path}`, { method, json, key });
  for (const [at, key] of [store.key, ada.key, bob.key].entries())
    await ask('POST', '/webhooks', { url: receivers[at]?.url, types }, key);
  const holder = `key:${ada.id}`;
  const { json } = await ask('POST', '/parcels', { holder });
  const path = `/parcels/${json.id}`;
  await ask('PATCH', path, { version: 1, holder: `key:${bob.id}` });
  await ask('PATCH', path, { version: 2, holder });
  for (const one of receivers.slice(0, 2)) await one.until(3);
  await receivers[2]?.until(2);
  const seen = receivers.map(({ distinct }) =>
    distinct.map(({ type }) => type),
  );
  const [added, changed, removed] = types;
  expect(seen).toEqual([
    [added, changed, changed],
    [added, removed, added],
    [added, removed],
  ]);
});
