import { defineEntity, p } from '@mikro-orm/core';
import type { Int64 } from '#engine/validation/int64.js';

/** A table with columns of every type, and with names that SQL must quote. */

export const Size = { small: 'small', large: 'large' } as const;
export const CrateEntity = defineEntity({
  name: 'Crate',
  tableName: 'Order',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    place: p.text(),
    order: p.integer().nullable(),
    parent: p.bigint('bigint').nullable(),
    isOpen: p.boolean(),
    size: p.enum(Object.values(Size)).nullable(),
    weight: p.double().nullable(),
    seenAt: p.datetime(),
    quote: p.text().name('a "quote"').nullable(),
    level: p.text().default('basic'),
    addedAt: p.datetime().defaultRaw('now()'),
  },
  indexes: [
    { properties: ['seenAt', 'id'] },
    { properties: ['isOpen', 'id'] },
    { properties: ['parent', 'id'] },
    { properties: ['order', 'id'] },
    { properties: ['place', 'id'] },
  ],
});

export interface Crate {
  readonly id: Int64;
  readonly place: string;
  readonly order: number | null;
  readonly parent: Int64 | null;
  readonly isOpen: boolean;
  readonly size: keyof typeof Size | null;
  readonly weight: number | null;
  readonly seenAt: Date;
  readonly quote: string | null;
  readonly level: string;
  readonly addedAt: Date;
}

export const createCrate = `create table "Order" (
        id bigserial primary key, place text not null, "order" int, parent bigint, is_open boolean not null, size text,
        weight double precision, seen_at timestamptz not null, "a ""quote""" text, level text not null default 'basic',
        added_at timestamptz not null default now())`;
