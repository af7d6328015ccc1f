import { defineEntity, p } from '@mikro-orm/core';
import { columnsOf } from '#engine/records/columns.js';
import type { LiveList } from '#engine/records/live-list.js';
import type { Records } from '#engine/records/records.js';
import { PetEntity } from '../../../src/pets/pet.entity.ts';
import {
  type Checkup,
  checkupSchema,
  type NewCheckup,
} from './checkup.schemas.ts';

export const CheckupEntity = defineEntity({
  name: 'Checkup',
  tableName: 'checkup',
  properties: {
    ...columnsOf(checkupSchema),
    petId: () =>
      p
        .manyToOne(PetEntity)
        .mapToPk()
        .joinColumn('pet_id')
        .deleteRule('cascade'),
  },
  // One for each combination of the filters.
  indexes: [
    { properties: ['petId', 'id'] },
    { properties: ['state', 'id'] },
    { properties: ['petId', 'state', 'id'] },
  ],
});

export type Checkups = Records<Checkup, NewCheckup>;
export type LiveCheckups = LiveList<Checkup>;
