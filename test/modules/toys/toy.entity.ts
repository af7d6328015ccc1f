import { defineEntity } from '@mikro-orm/core';
import { columnsOf } from '#engine/records/columns.js';
import type { LiveList } from '#engine/records/live-list.js';
import type { Repository } from '#engine/records/repository.js';
import { type NewToy, type Toy, toySchema } from './toy.schemas.ts';

export const ToyEntity = defineEntity({
  name: 'Toy',
  tableName: 'toy',
  properties: columnsOf(toySchema),
  // Those of the filtered list, and of the lists by age and by name.
  indexes: [
    { properties: ['kind', 'id'] },
    { properties: ['madeAt', 'id'] },
    { properties: ['kind', 'madeAt', 'id'] },
    {
      name: 'toy_name_id',
      expression:
        'create index "toy_name_id" on "toy" (lower("name") collate "C", "id")',
    },
    {
      name: 'toy_kind_name_id',
      expression:
        'create index "toy_kind_name_id" on "toy" ("kind", lower("name") collate "C", "id")',
    },
  ],
});

/** Toys have no rules of their own, so they need no service. */
export type Toys = Repository<Toy, NewToy>;
export type LiveToys = LiveList<Toy>;
