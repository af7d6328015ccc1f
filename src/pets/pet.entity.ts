import { columnsOf } from '@animal-store/engine';
import { defineEntity } from '@mikro-orm/core';
import { petSchema } from './pet.schemas.ts';

export const PetEntity = defineEntity({
  name: 'Pet',
  tableName: 'pet',
  properties: columnsOf(petSchema),
  // Serves the filtered list.
  indexes: [{ properties: ['status', 'id'] }],
});
