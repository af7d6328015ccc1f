// runs: embedded, postgres

import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Call } from '#engine/call.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { sql } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** Items that say when they were created and changed, and by whom. */

const label = resource({
  name: 'Label',
  description: 'A label.',
  path: '/labels',
  operations: ['list', 'find', 'create', 'createMany', 'change', 'remove'],
  members: { text: textSchema({ description: 'What it says.' }) },
  example: { text: 'fragile' },
  orders: ['changedAt'],
  transitions: {
    shout: {
      description: 'In capitals.',
      change: ({ text }) => ({ text: text.toUpperCase() }),
    },
  },
  times: true,
  actor: true,
  trace: true,
});
const LabelEntity = defineEntity({
  name: 'Label',
  tableName: 'label',
  properties: label.columns,
  indexes: [{ properties: ['changedAt', 'id'] as never }],
});
type Label = ItemOf<typeof label>;
const recordsIn = (database: never) =>
  new Records<Label, NewOf<typeof label>>(database, LabelEntity, label.lists);

const labelsModule: Module = {
  tag: { name: 'Labels', description: 'Labels.' },
  entities: [LabelEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_08_03_000000_create_label', [
      `create table label (id bigserial primary key, text text not null,
        created_at timestamptz not null default now(), changed_at timestamptz not null default now(),
        changed_by text not null, version int not null default 1)`,
      'create index on label (changed_at, id)',
    ]),
  ],
  open({ database }) {
    const records = recordsIn(database as never);
    return { resources: [label.serve(records)] };
  },
};
const store = storeForAll({}, undefined, { more: [labelsModule] });
const send = (path: string, json?: object, more: object = {}) =>
  rest(store, `/v1/labels${path}`, { method: 'POST', json, ...more } as never);
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);

test('an item says when it was created and changed, and by whom', async () => {
  const { key, id: other } = await store.keys.issue({ name: 'other' });
  const { json: made } = await send('', { text: 'first' });
  const { id } = made;
  const stamps = { createdAt: time, changedAt: time, changedBy: 'key:1' };
  expect(made).toEqual({ id, text: 'first', ...stamps, version: 1 });
  expect(made.changedAt).toBe(made.createdAt);
  const past = await sql<[string]>(
    store.database,
    `update label set created_at = '2020-01-01', changed_at = '2020-01-02' where id = $1 returning '2020'`,
    [id],
  );
  expect(past).toEqual([['2020']]);
  const json = { version: 1, text: 'next' };
  const changed = await send(`/${id}`, json, { method: 'PATCH', key });
  const createdAt = '2020-01-01T00:00:00.000Z';
  const by = { createdAt, changedAt: time, changedBy: `key:${other}` };
  expect(changed.json).toEqual({ id, text: 'next', ...by, version: 2 });
  expect(changed.json.changedAt > createdAt).toBe(true);
  const shouted = await send(`/${id}/shout`);
  expect(shouted.json).toMatchObject({ text: 'NEXT', changedBy: 'key:1' });
  const query = `{ label(id: ${id}) { createdAt changedAt changedBy } }`;
  const { createdAt: _, ...last } = shouted.json;
  expect((await graphqlText(store, { query })).data).toEqual({
    label: { createdAt, changedAt: last.changedAt, changedBy: 'key:1' },
  });
});

test('no client sets them', async () => {
  const { json } = await send('', { text: 'own' });
  const path = `/${json.id}`;
  for (const member of ['createdAt', 'changedAt', 'changedBy']) {
    const set = { [member]: '2020-01-01T00:00:00.000Z' };
    const prefer = { prefer: 'handling=strict' };
    const strict = await send('', { text: 'x', ...set }, { headers: prefer });
    expect(strict).toMatchObject({ status: 400 });
    const ignored = await send('', { text: 'x', ...set });
    expect(ignored.json[member]).not.toBe('2020-01-01T00:00:00.000Z');
    const change = { version: 1, text: 'y', ...set };
    const changed = await send(path, change, { method: 'PATCH' });
    expect(changed).toMatchObject({ status: 400 });
    const query = `mutation { createLabel(input: { text: "x", ${member}: "2020-01-01T00:00:00.000Z" }) { id } }`;
    const { errors } = await graphqlText(store, { query });
    expect(errors?.[0]?.message).toContain(member);
  }
});

test('a repeated creation, a batch and a command have them', async () => {
  const headers = { 'idempotency-key': '"label"' };
  const first = await send('', { text: 'once' }, { headers });
  const again = await send('', { text: 'once' }, { headers });
  expect(again.json).toEqual(first.json);
  expect(again.headers['idempotent-replayed']).toBe('true');
  const inputs = [{ text: 'a' }, { text: 'b' }];
  const batch = await send('/batch', { inputs });
  expect(batch.json).toMatchObject([
    { item: { createdAt: time, changedBy: 'key:1' } },
    { item: { createdAt: time, changedBy: 'key:1' } },
  ]);
  const records = recordsIn(store.database as never);
  const call = Call.ofOperator();
  const item = await records.create({ text: 'by command' } as never, call);
  expect(item).toMatchObject({
    createdAt: expect.any(Date),
    changedBy: 'operator',
  });
});

test('they are in lists, which are sorted by them, and not in a trace', async () => {
  const { json } = await send('', { text: 'last' });
  const text = { version: 1, text: 'changed' };
  const { json: item } = await send(`/${json.id}`, text, { method: 'PATCH' });
  const list = await rest(store, '/v1/labels?sort=changedAt_desc&limit=1');
  expect(list.json).toEqual([item]);
  const changes = await rest(
    store,
    `/v1/changes?collection=labels&itemId=${json.id}`,
  );
  expect(changes.json).toMatchObject([
    { before: null, after: { text: 'last' } },
    { before: { text: 'last' }, after: { text: 'changed' } },
  ]);
  expect(Object.keys(changes.json[0].after)).toEqual(['text']);
});
