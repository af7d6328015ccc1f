import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** More than a client may give values of a filter. */
const count = 21;

function moduleAt(_: unknown, at: number): Module {
  const name = `Shelf${at}`;
  const shelf = resource({
    name,
    description: 'A shelf.',
    path: `/shelves-${at}`,
    operations: ['list', 'create'],
    members: { text: textSchema({ description: 'What it says.' }) },
    trace: true,
  });
  const tableName = `shelf_${at}`;
  const entity = defineEntity({ name, tableName, properties: shelf.columns });
  return {
    tag: { name: `Shelves ${at}`, description: 'Shelves.' },
    entities: [entity],
    keepsChanges: true,
    migrations: [
      migrationOf(`2027_09_01_0000${at + 10}_create_shelf`, [
        `create table ${tableName} (id bigserial primary key, text text not null, version int not null default 1)`,
      ]),
    ],
    open({ database }) {
      const records = new Records(database, entity, shelf.lists as never);
      return { resources: [shelf.serve(records as never)] };
    },
  };
}
const more = Array.from({ length: count }, moduleAt);
const store = storeForAll({ QUOTA_PER_MINUTE: '1000' }, undefined, { more });

test('changes of many collections are one list, which costs what it has', async () => {
  const json = { text: 'x' };
  for (const at of [0, 20])
    await rest(store, `/v1/shelves-${at}`, { method: 'POST', json });
  const { key } = await store.keys.issue({ name: 'x', scope: 'read' });
  const {
    status,
    json: changes,
    headers,
  } = await rest(store, '/v1/changes', {
    key,
  });
  expect([status, changes.length]).toEqual([200, 2]);
  expect(headers.ratelimit).toContain('r=997;');
});
