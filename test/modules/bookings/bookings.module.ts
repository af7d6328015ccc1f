import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';

const text = (description: string) =>
  Type.Optional(nullable(textSchema({ maxLength: 255, description })));
const operations = [
  ...(['list', 'find', 'create', 'createMany'] as const),
  ...(['change', 'remove', 'follow'] as const),
];

/** Staff see those of their hotel, guests their own ones there. */
export const booking = resource({
  name: 'Booking',
  description: 'A booking of a guest.',
  path: '/bookings',
  operations,
  members: {
    label: textSchema({ maxLength: 255, description: 'What it is.' }),
    note: text('What staff think.'),
    guest: text('Whose it is.'),
  },
  audiences: [
    { scope: 'bookings', rows: { hotel: 'tenant' } },
    {
      scope: 'guests',
      rows: { hotel: 'tenant', guest: 'subject' },
      hides: ['note', 'changedBy'],
      writes: ['label'],
    },
    { scope: 'bookings:all', rows: {} },
  ],
  actor: true,
  trace: true,
  follow: 'all',
});
export const BookingEntity = defineEntity({
  name: 'Booking',
  tableName: 'booking',
  properties: booking.columns,
  indexes: [
    { properties: ['hotel', 'id'] },
    { properties: ['hotel', 'guest', 'id'] },
  ],
});

/** Its sender and its recipient see it. */
export const parcel = resource({
  name: 'Parcel',
  description: 'A parcel of one guest for another.',
  path: '/parcels',
  operations,
  members: {
    label: textSchema({ maxLength: 255, description: 'What it is.' }),
    recipient: text('Who gets it.'),
  },
  audiences: [
    { scope: 'guests', rows: { sender: 'subject' } },
    { scope: 'guests', rows: { recipient: 'subject' } },
  ],
  trace: true,
  follow: 'all',
});
export const ParcelEntity = defineEntity({
  name: 'Parcel',
  tableName: 'parcel',
  properties: parcel.columns,
  indexes: [
    { properties: ['sender', 'id'] },
    { properties: ['recipient', 'id'] },
  ],
});

const row =
  '"id" bigserial primary key, "label" text not null, "version" int not null default 1';

export const bookingsModules: Module[] = [
  {
    tag: { name: 'Bookings', description: 'Bookings of guests.' },
    entities: [BookingEntity, ParcelEntity],
    keepsChanges: true,
    migrations: [
      migrationOf('2027_08_05_000000_create_booking', [
        `create table "booking" (${row}, "note" text, "guest" text, "hotel" text not null, "changed_by" text not null)`,
        'create index on "booking" ("hotel", "id")',
        'create index on "booking" ("hotel", "guest", "id")',
        `create table "parcel" (${row}, "sender" text not null, "recipient" text)`,
        'create index on "parcel" ("sender", "id")',
        'create index on "parcel" ("recipient", "id")',
      ]),
    ],
    open({ database }) {
      const bookings = new Records<
        ItemOf<typeof booking>,
        NewOf<typeof booking>
      >(database, BookingEntity, booking.lists);
      const parcels = new Records<ItemOf<typeof parcel>, NewOf<typeof parcel>>(
        database,
        ParcelEntity,
        parcel.lists,
      );
      return { resources: [booking.serve(bookings), parcel.serve(parcels)] };
    },
  },
  { tag: { name: 'Guests', description: 'Guests.' }, open: () => ({}) },
];

/** For JWT_SCOPES: a tag of each. */
export const tags = [
  'staff=bookings:write',
  'guest=guests:write',
  'support=bookings:all',
  'changes=changes:read',
  'webhooks=webhooks:write',
].join();
