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
import { expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { printedIn, statementsOf } from '../../support/statements.ts';
import { storeForAll } from '../../support/store.ts';

const described = {
  description: 'A paper.',
  operations: ['list', 'create', 'change', 'remove'],
  members: { name: textSchema({ description: 'Its name.' }) },
} as const;
const sign = resource({ ...described, name: 'Sign', path: '/signs' });
const SignEntity = defineEntity({
  name: 'Sign',
  tableName: 'sign',
  properties: sign.columns,
});
type Signs = Records<ItemOf<typeof sign>, NewOf<typeof sign>>;

const flyer = resource({
  ...described,
  name: 'Flyer',
  path: '/flyers',
  owner: { member: 'shop', by: 'tenant' },
});
const FlyerEntity = defineEntity({
  name: 'Flyer',
  tableName: 'flyer',
  properties: flyer.columns,
  indexes: [{ properties: ['shop', 'id'] }],
});

const slip = resource({
  ...described,
  name: 'Slip',
  path: '/slips',
  trace: true,
});
const SlipEntity = defineEntity({
  name: 'Slip',
  tableName: 'slip',
  properties: slip.columns,
});

const columns =
  'id bigserial primary key, name text not null, version int not null default 1';
const opened: Signs[] = [];
const module: Module = {
  tag: { name: 'Papers', description: 'Papers.' },
  entities: [SignEntity, FlyerEntity, SlipEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_09_02_000000_create_papers', [
      `create table sign (${columns})`,
      `create table flyer (${columns}, shop text not null)`,
      'create index on flyer (shop, id)',
      `create table slip (${columns})`,
    ]),
  ],
  open({ database }) {
    opened.push(
      new Records(database, SignEntity, sign.lists) as Signs,
      new Records(database, FlyerEntity, flyer.lists) as unknown as Signs,
      new Records(database, SlipEntity, slip.lists) as Signs,
    );
    return {};
  },
};
const store = storeForAll({}, undefined, { more: [module] });

const records = () => opened as [Signs, Signs, Signs];

test('the head of the file that makes them has the statements of three creations', async () => {
  const [signs] = records();
  const hash = Buffer.alloc(32);
  const claim = { keyId: 0, operation: 'createSign', hash };
  const withKey = Object.assign(Call.ofOperator(), { claim });
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name }) as never);
  const work = async () => {
    await signs.create(a as never, Call.ofOperator());
    await signs.createMany([b as never, c as never], Call.ofOperator());
    await signs.create(d as never, withKey);
  };
  const sent = await statementsOf(/^insert_/, store.database, work);
  expect(printedIn('insert-statements.ts')).toEqual(sent);
});

test('the head of the file that makes them has the statements of two changes and a removal', async () => {
  const [signs, flyers, slips] = records();
  const caller = { id: 1, name: 'x', scopes: ['write'], tenant: 'north' };
  const ofTenant = Object.assign(new Call(), { caller });
  const change = { version: 1, name: 'new' } as never;
  const id = 7 as never;
  const work = async () => {
    await signs.change(id, change, Call.ofOperator());
    await flyers.remove(id, {} as never, ofTenant);
    await slips.change(id, change, Call.ofOperator());
  };
  const sent = await statementsOf(/^(?:change|remove)_/, store.database, work);
  expect(printedIn('change-statements.ts')).toEqual(sent);
});
