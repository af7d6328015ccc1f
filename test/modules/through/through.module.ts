import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { ormOptions } from '#engine/database/options.js';
import { Records } from '#engine/records/records.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
  use,
} from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

/** Boats of skippers: lists through relations, by every kind of a member. */

const ranks = { mate: 'mate', captain: 'captain' } as const;
const rank = enumSchema('SkipperRank', ranks, 'What a skipper is.');

const ofSkippers = {
  name: textSchema({ maxLength: 100, description: 'The name.' }),
  born: moment({ description: 'When.' }),
  fee: decimalSchema(8, 2, { description: 'For a day.' }),
  number: int64Schema({ description: 'Of the licence.' }),
  isAway: Type.Boolean({ description: 'Whether he is away.' }),
  rank: use(rank, 'The rank.'),
  nick: Type.Optional(
    nullable(textSchema({ maxLength: 100, description: 'How he is called.' })),
  ),
};
export const skipper = resource({
  name: 'Skipper',
  description: 'Who steers.',
  path: '/skippers',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: ofSkippers,
});
export type Skipper = ItemOf<typeof skipper>;
export type NewSkipper = NewOf<typeof skipper>;

export const SkipperEntity = defineEntity({
  name: 'Skipper',
  tableName: 'skipper',
  properties: skipper.columns,
});

const to = <const Member extends keyof typeof ofSkippers>(member: Member) => ({
  by: 'skipperId',
  member,
  schema: ofSkippers[member],
});
const orders = ['name', 'nick', 'born', 'fee', 'number', 'isAway', 'rank'];
const name = textSchema({ maxLength: 100, description: 'The name.' });
const reference = (description: string) =>
  Type.Optional(nullable(int64Schema({ description })));

export const boat = resource({
  name: 'Boat',
  description: 'What floats.',
  path: '/boats',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    name,
    skipperId: reference('Who steers it.'),
    mateId: reference('Who helps.'),
    tenderOfId: reference('The greater boat.'),
  },
  through: {
    skipper_name: to('name'),
    skipper_born: to('born'),
    skipper_fee: to('fee'),
    skipper_number: to('number'),
    skipper_isAway: to('isAway'),
    skipper_rank: to('rank'),
    skipper_nick: to('nick'),
    mate_name: { ...to('name'), by: 'mateId' },
    ship_name: { by: 'tenderOfId', member: 'name', schema: name },
  },
  filters: ['name', 'skipper_isAway', 'mate_name', 'skipper_name'],
  in: ['skipper_rank'],
  nulls: ['skipper_name'],
  combinations: [
    ['name'],
    ['skipper_isAway'],
    ['mate_name'],
    ['skipper_name'],
    ['skipper_rank'],
  ],
  orders: ['skipper_isAway', 'skipper_rank'],
  ranges: ['skipper_born', 'skipper_fee', 'skipper_number', 'skipper_name'],
  prefixes: ['skipper_name', 'skipper_nick', 'ship_name'],
  relations: {
    skipper: { by: 'skipperId', to: () => skipper.type },
  },
});
export type Boat = ItemOf<typeof boat>;
export type NewBoat = NewOf<typeof boat>;

const texts = ['skipper_name', 'skipper_nick', 'ship_name'];
const sorted = [...orders.map((one) => `skipper_${one}`), 'ship_name'];
const columnOf = (member: string) =>
  member.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);
const keyOf = (member: string) => {
  const name = `"${columnOf(member)}"`;
  const value = texts.includes(member) ? `lower(${name}) collate "C"` : name;
  return `(array[${value}])`;
};
const filters = [
  [],
  ['name'],
  ['skipper_isAway'],
  ['mate_name'],
  ['skipper_name'],
  ['skipper_rank'],
];
const indexes = filters.flatMap((members) => {
  const columns = members.map((one) => `"${columnOf(one)}"`);
  return sorted.map((order) => {
    const name = ['boat', ...members, order].join('_');
    const keys = [...columns, keyOf(order), '"id"'].join(', ');
    return { name, expression: `create index "${name}" on "boat" (${keys})` };
  });
});

export const BoatEntity = defineEntity({
  name: 'Boat',
  tableName: 'boat',
  properties: {
    ...boat.columns,
    skipperId: () =>
      p
        .manyToOne(SkipperEntity)
        .mapToPk()
        .joinColumn('skipper_id')
        .deleteRule('set null')
        .nullable(),
    mateId: () =>
      p
        .manyToOne(SkipperEntity)
        .mapToPk()
        .joinColumn('mate_id')
        .deleteRule('no action')
        .nullable(),
    tenderOfId: () =>
      p
        .manyToOne(BoatEntity as never)
        .mapToPk()
        .joinColumn('tender_of_id')
        .deleteRule('no action')
        .nullable() as never,
  },
  indexes: [
    { properties: ['skipperId', 'id'] },
    { properties: ['mateId', 'id'] },
    { properties: ['tenderOfId', 'id'] },
    { properties: ['name', 'id'] },
    { properties: ['skipper_isAway', 'id'] },
    { properties: ['mate_name', 'id'] },
    { properties: ['skipper_name', 'id'] },
    { properties: ['skipper_rank', 'id'] },
    ...indexes,
  ],
});

/** What `migration:create` would write. */
export async function createdBy(entities: never[]) {
  const model = { entities, migrations: [] };
  const options = ormOptions(
    { url: 'postgres:///none', poolMax: 1 },
    model,
    {},
  );
  const orm = new MikroORM(options) as any;
  const text: string = await orm.schema.getCreateSchemaSQL({ wrap: false });
  return text.split(/;\n+/).filter((one) => one.trim() !== '');
}
const entities = [SkipperEntity, BoatEntity];
const statements = await createdBy(entities as never[]);

export const boatsModule: Module = {
  tag: { name: 'Boats', description: 'Boats and skippers.' },
  entities,
  migrations: [migrationOf('2027_09_01_000000_create_boat', statements)],
  open({ database }) {
    const skippers = new Records<Skipper, NewSkipper>(
      database,
      SkipperEntity,
      skipper.lists,
    );
    const boats = new Records<Boat, NewBoat>(database, BoatEntity, boat.lists);
    return {
      resources: [
        skipper.serve(skippers),
        boat.serve(boats, { related: { skipper: skippers } }),
      ],
    };
  },
};
