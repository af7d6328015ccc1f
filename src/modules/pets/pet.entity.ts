import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { Row } from '../../records/records.ts';

/** Availability, spelled as in the specification. */
export const PetStatus = { available: 'available', pending: 'pending', sold: 'sold' } as const;
export type PetStatus = (typeof PetStatus)[keyof typeof PetStatus];

const petTable = defineEntity({
  name: 'Pet',
  tableName: 'pet',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    name: p.text(),
    categoryId: p.bigint('bigint'),
    status: p.enum(Object.values(PetStatus)),
  },
  // Serves the filtered list.
  indexes: [{ properties: ['status', 'id'] }],
});

/** The table `pet`. */
export class PetEntity extends petTable.class {}

petTable.setClass(PetEntity);

/** A pet of the catalogue. */
export type Pet = Row<InferEntity<typeof petTable>>;
