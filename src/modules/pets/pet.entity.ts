import { defineEntity } from '@mikro-orm/core';
import { columnsOf } from '../../records/columns.ts';
import { petSchema } from './pet.schemas.ts';

export const PetEntity = defineEntity({
  name: 'Pet',
  tableName: 'pet',
  properties: columnsOf(petSchema),
  // Serves the filtered list.
  indexes: [{ properties: ['status', 'id'] }],
});
