import { defineEntity, p } from '@mikro-orm/core';
import { PetEntity } from '../../../src/modules/pets/pet.entity.ts';
import { columnsOf } from '../../../src/records/columns.ts';
import type { LiveList } from '../../../src/records/live-list.ts';
import type { Records } from '../../../src/records/records.ts';
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
