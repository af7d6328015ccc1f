import { defineEntity } from '@mikro-orm/core';
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
import {
  decimalSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

/** Collections that leave a trace: for all, by subject, by tenant. */

const changing = ['list', 'find', 'create', 'change', 'remove'] as const;

export const entry = resource({
  name: 'Entry',
  description: 'An entry of a ledger.',
  path: '/entries',
  operations: [...changing, 'createMany', 'follow'],
  members: {
    title: textSchema({ description: 'Its title.' }),
    amount: decimalSchema(12, 2, { description: 'Its amount.' }),
    number: int64Schema({ description: 'Its number.' }),
    at: Type.Optional(nullable(moment({ description: 'When it is due.' }))),
    day: Type.Optional(
      nullable(Type.String({ format: 'date', description: 'Its day.' })),
    ),
    ratio: Type.Optional(nullable(Type.Number({ description: 'Its ratio.' }))),
    isPaid: Type.Optional(
      nullable(Type.Boolean({ description: 'Whether it is paid.' })),
    ),
    data: Type.Optional(
      nullable(Type.Unknown({ description: 'What others say.' })),
    ),
    tags: Type.Optional(
      nullable(
        Type.Array(textSchema({ maxLength: 900, description: 'A tag.' }), {
          maxItems: 5,
          description: 'Its tags.',
        }),
      ),
    ),
    note: Type.Optional(nullable(textSchema({ description: 'A secret.' }))),
  },
  trace: { except: ['note'] },
});
type Entry = ItemOf<typeof entry>;
type NewEntry = NewOf<typeof entry>;

export const EntryEntity = defineEntity({
  name: 'Entry',
  tableName: 'entry',
  properties: entry.columns,
  uniques: [{ properties: ['title'] }],
});

const memo = resource({
  name: 'Memo',
  description: 'A note of its writer.',
  path: '/memos',
  operations: changing,
  members: { text: textSchema({ description: 'What it says.' }) },
  owner: 'writer',
  trace: true,
});
const MemoEntity = defineEntity({
  name: 'Memo',
  tableName: 'memo',
  properties: memo.columns,
  indexes: [{ properties: ['writer', 'id'] }],
});

const file = resource({
  name: 'File',
  description: 'A file of a tenant.',
  path: '/files',
  operations: [...changing, 'follow'],
  members: { text: textSchema({ description: 'What it says.' }) },
  owner: { member: 'tenant', by: 'tenant' },
  trace: true,
  follow: 'all',
});
const FileEntity = defineEntity({
  name: 'File',
  tableName: 'file',
  properties: file.columns,
  indexes: [{ properties: ['tenant', 'id'] }],
});

const booking = operation({
  name: 'bookTwice',
  description: 'Adds two entries and changes the first one, or does nothing.',
  path: '/bookings',
  input: Type.Object(
    { title: textSchema({ description: 'The beginning of both titles.' }) },
    { $id: 'NewBooking', description: 'What both have.' },
  ),
  output: Type.Object(
    { booked: Type.Integer({ description: 'How many entries.' }) },
    { $id: 'Booking', description: 'What it has added.' },
  ),
  creates: [EntryEntity],
});

const owned = (table: string, owner: string) => [
  `create table ${table} (id bigserial primary key, text text not null, ${owner} text not null, version int not null default 1)`,
  `create index on ${table} (${owner}, id)`,
];

export const ledgersModule: Module<Records<Entry, NewEntry>> = {
  tag: { name: 'Ledgers', description: 'Collections that leave a trace.' },
  entities: [EntryEntity, MemoEntity, FileEntity],
  keepsChanges: true,
  migrations: [
    migrationOf('2027_07_01_000000_create_ledgers', [
      `create table entry (id bigserial primary key, title text not null unique, amount numeric(12,2) not null,
        number bigint not null, at timestamptz, day date, ratio double precision, is_paid boolean,
        data jsonb, tags text[], note text, version int not null default 1)`,
      ...owned('memo', 'writer'),
      ...owned('file', 'tenant'),
    ]),
  ],
  open({ database }) {
    const entries = new Records<Entry, NewEntry>(
      database,
      EntryEntity,
      entry.lists,
    );
    const book = booking.serve(database, async ({ title }, call) => {
      const values = { amount: '1', number: 1n as never };
      const add = (at: number) => {
        const input = { ...values, title: `${title} ${at}` };
        return entries.create(input as never, call);
      };
      const first = await add(1);
      await add(2);
      const amount = { version: 1, amount: '2' };
      await entries.change(first.id, amount as never, call);
      if (title === 'refused') throw badInput('It is refused.');
      return { booked: 2 };
    });
    return {
      service: entries,
      resources: [
        entry.serve(entries),
        memo.serve(new Records(database, MemoEntity, memo.lists)),
        file.serve(new Records(database, FileEntity, file.lists)),
        book,
      ],
    };
  },
};
