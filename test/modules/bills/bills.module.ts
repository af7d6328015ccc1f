import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { badInput } from '#engine/errors.js';
import { Records } from '#engine/records/records.js';
import { select } from '#engine/records/select.js';
import {
  int64Schema,
  nullable,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';
import { createdBy } from '../through/through.module.ts';

/** Bills of customers, and their lines, which are of whom their bill is. */

const text = (description: string) =>
  textSchema({ maxLength: 50, description });
const person = (description: string) =>
  Type.Optional(nullable(text(description)));
const operations = [
  ...(['list', 'find', 'create', 'createMany'] as const),
  ...(['change', 'remove', 'follow'] as const),
];

export const bill = resource({
  name: 'Bill',
  description: 'What a customer pays.',
  path: '/bills',
  operations,
  members: { login: person('Whose it is.') },
  audiences: [
    { scope: 'bills', rows: { firm: 'tenant' } },
    { scope: 'buyers', rows: { firm: 'tenant', login: 'subject' } },
    { scope: 'clerks', rows: { firm: 'tenant' } },
    { scope: 'bills:all', rows: {} },
  ],
});
export const BillEntity = defineEntity({
  name: 'Bill',
  tableName: 'bill',
  properties: bill.columns,
  indexes: [{ properties: ['firm', 'login', 'id'] }],
  uniques: [{ properties: ['firm', 'id'] }],
});

const ofBuyer = { firm: 'tenant', bill_login: 'subject' } as const;
export const line = resource({
  name: 'Line',
  description: 'A part of a bill.',
  path: '/lines',
  operations,
  members: {
    title: text('What it is.'),
    amount: withDefault(
      Type.Integer({ minimum: 0, maximum: 99, description: 'How much.' }),
      1,
    ),
    cost: Type.Optional(nullable(text('What it costs the firm.'))),
    billId: Type.Optional(nullable(int64Schema({ description: 'Its bill.' }))),
    clerk: person('Who writes it.'),
  },
  through: {
    bill_login: {
      by: 'billId',
      member: 'login',
      // A line without a bill has no default of the bill.
      schema: withDefault(text('Whose.'), 'ann'),
    },
  },
  audiences: [
    { scope: 'bills', rows: { firm: 'tenant' } },
    { scope: 'buyers', rows: ofBuyer, hides: ['cost'] },
    // They see all bills, and the lines of their own.
    { scope: 'clerks', rows: ofBuyer },
    {
      scope: 'writers',
      rows: { firm: 'tenant', clerk: 'subject' },
      hides: ['amount'],
    },
    {
      scope: 'readers',
      rows: { firm: 'tenant', clerk: 'subject' },
      writes: [],
    },
    { scope: 'bills:all', rows: {} },
  ],
  filters: ['billId', 'bill_login'],
  combinations: [['billId'], ['bill_login']],
  ranges: ['amount'],
  transitions: {
    empty: {
      description: 'It is free.',
      change({ cost }) {
        if (cost === 'secret') throw badInput(`It costs a ${cost}.`);
        return { amount: 0 };
      },
    },
  },
  relations: { bill: { by: 'billId', to: () => bill.type, list: 'lines' } },
});
export type Line = ItemOf<typeof line>;

const views = [
  [],
  ['firm'],
  ['firm', 'bill_login'],
  ['firm', 'clerk'],
] as const;
const filters = [[], ['billId'], ['bill_login']] as const;
const indexes = views
  .flatMap((view) =>
    filters.flatMap((filter) =>
      [[], ['amount'] as const].map((order) => [
        ...new Set([...view, ...filter, ...order, 'id'] as const),
      ]),
    ),
  )
  .filter((members) => `${members}` !== 'id');
export const LineEntity = defineEntity({
  name: 'Line',
  tableName: 'line',
  properties: {
    ...line.columns,
    billId: () =>
      p
        .manyToOne(BillEntity)
        .mapToPk()
        .joinColumn('bill_id')
        .deleteRule('no action')
        .nullable(),
  },
  indexes: [...new Map(indexes.map((one) => [`${one}`, one])).values()].map(
    (properties) => ({
      name: `line_${properties.join('_').toLowerCase()}`,
      properties,
    }),
  ),
  uniques: [{ properties: ['firm', 'title'] }],
});

const ownLines = operation({
  name: 'ownLines',
  description: 'The lines of a buyer, by hand.',
  path: '/own-lines',
  input: Type.Object({}),
  output: Type.Array(line.schemas.item, { $id: 'OwnLines', maxItems: 100 }),
  scope: 'buyers',
});

const statements = await createdBy([BillEntity, LineEntity] as never[]);
const names = ['buyers', 'clerks', 'writers', 'readers'];
export const billModules: Module[] = [
  {
    tag: { name: 'Bills', description: 'Bills and their lines.' },
    entities: [BillEntity, LineEntity],
    migrations: [migrationOf('2027_09_03_000000_create_bill', statements)],
    open({ database }) {
      const bills = new Records<ItemOf<typeof bill>, NewOf<typeof bill>>(
        database,
        BillEntity,
        bill.lists,
      );
      const lines = new Records<Line, NewOf<typeof line>>(
        database,
        LineEntity,
        line.lists,
      );
      return {
        resources: [
          bill.serve(bills),
          line.serve(lines, { related: { bill: bills } }),
          ownLines.serve(
            database,
            (_, call) => select(call, lines)`
              select line.* from ${lines} as line order by id limit 100`,
          ),
        ],
      };
    },
  },
  ...names.map(
    (name): Module => ({
      tag: { name, description: `For ${name}.` },
      open: () => ({}),
    }),
  ),
];
