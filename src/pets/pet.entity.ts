import { defineEntity, p } from '@mikro-orm/core';
import type { Int64 } from '../int64.ts';

/** Availability, spelled as in the specification. */
export const PetStatus = { available: 'available', pending: 'pending', sold: 'sold' } as const;
export type PetStatus = (typeof PetStatus)[keyof typeof PetStatus];

/** An animal of the catalogue. */
export interface Pet {
  readonly id: Int64;
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus;
}

const petSchema = defineEntity({
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
export class PetEntity extends petSchema.class {}

petSchema.setClass(PetEntity);
