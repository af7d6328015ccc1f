import { defineEntity, p } from '@mikro-orm/core';

/** Availability, spelled as in the specification. */
export const PetStatus = { available: 'available', pending: 'pending', sold: 'sold' } as const;
export type PetStatus = (typeof PetStatus)[keyof typeof PetStatus];

const petSchema = defineEntity({
  name: 'Pet',
  tableName: 'pet',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    name: p.text(),
    categoryId: p.bigint('bigint'),
    status: p.enum(Object.values(PetStatus)),
  },
  // Serves `where status = ? and id > ? order by id`, the filtered list.
  indexes: [{ properties: ['status', 'id'] }],
});

/** The table `pet`. Its identifiers are int64 and therefore `bigint`, never `number`. */
export class Pet extends petSchema.class {}

petSchema.setClass(Pet);
