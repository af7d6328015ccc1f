import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** More members than an SQL function takes arguments. */
const names = Array.from({ length: 120 }, (_, at) => `m${at}`);
const of = <Value>(value: (name: string) => Value) =>
  Object.fromEntries(names.map((name) => [name, value(name)]));

const form = resource({
  name: 'Form',
  description: 'A form with many members.',
  path: '/forms',
  operations: ['list', 'find', 'create', 'change', 'remove', 'createMany'],
  members: of((name) =>
    textSchema({ maxLength: 20, description: `Its ${name}.` }),
  ),
  trace: true,
});
const FormEntity = defineEntity({
  name: 'Form',
  tableName: 'form',
  properties: form.columns,
});
const formsModule: Module = {
  tag: { name: 'Forms', description: 'Forms.' },
  entities: [FormEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_02_000000_create_form', [
      `create table form (id bigserial primary key, ${names.map((name) => `${name} text not null`).join(', ')}, version int not null default 1)`,
    ]),
  ],
  open({ database }) {
    const records = new Records<ItemOf<typeof form>, NewOf<typeof form>>(
      database,
      FormEntity,
      form.lists,
    );
    return { resources: [form.serve(records)] };
  },
};
const store = storeForAll({}, undefined, { more: [formsModule] });

test('a collection of many members has a trace', async () => {
  const json = of((name) => `of ${name}`);
  const inputs = [json, json];
  const batch = { method: 'POST', json: { inputs } };
  const made = await rest(store, '/v1/forms/batch', batch);
  const [{ item }] = made.json;
  const path = `/v1/forms/${item.id}`;
  const change = { version: 1, m0: 'x', m60: 'of m60', m119: 'y' };
  const changed = await rest(store, path, { method: 'PATCH', json: change });
  expect(changed).toMatchObject({ status: 200 });
  await rest(store, path, { method: 'DELETE' });
  const last = { ...json, m0: 'x', m119: 'y' };
  const changes = await rest(store, '/v1/changes');
  expect(changes.json.map(({ before, after }: any) => [before, after])).toEqual(
    [
      [null, json],
      [null, json],
      [
        { m0: 'of m0', m119: 'of m119' },
        { m0: 'x', m119: 'y' },
      ],
      [last, null],
    ],
  );
});
