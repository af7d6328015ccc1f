import { defineEntity } from '@mikro-orm/core';
import { columnsOf } from '../../../src/records/columns.ts';
import type { LiveList } from '../../../src/records/live-list.ts';
import type { Records } from '../../../src/records/records.ts';
import { type NewToy, type Toy, toySchema } from './toy.schemas.ts';

export const ToyEntity = defineEntity({
  name: 'Toy',
  tableName: 'toy',
  properties: columnsOf(toySchema),
  // Those of the filtered list, and of the lists by age.
  indexes: [
    { properties: ['kind', 'id'] },
    { properties: ['madeAt', 'id'] },
    { properties: ['kind', 'madeAt', 'id'] },
  ],
});

/** Toys have no rules of their own, so they need no service. */
export type Toys = Records<Toy, NewToy>;
export type LiveToys = LiveList<Toy>;
