import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { PetEntity } from '../../../src/modules/pets/pet.entity.ts';
import type { LiveList } from '../../../src/records/live-list.ts';
import type { Records, Row } from '../../../src/records/records.ts';
import { CheckupState, type NewCheckup } from './checkup.schemas.ts';

const checkupTable = defineEntity({
  name: 'Checkup',
  tableName: 'checkup',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    petId: () => p.manyToOne(PetEntity).mapToPk().joinColumn('pet_id').deleteRule('cascade'),
    reason: p.text(),
    state: p.enum(Object.values(CheckupState)),
    note: p.text().nullable(),
    price: p.decimal().precision(38).scale(2).nullable(),
    version: p.integer().version(),
  },
  // One for each combination of the filters.
  indexes: [{ properties: ['petId', 'id'] }, { properties: ['state', 'id'] }, { properties: ['petId', 'state', 'id'] }],
});

export class CheckupEntity extends checkupTable.class {}
checkupTable.setClass(CheckupEntity);

export type Checkup = Row<InferEntity<typeof checkupTable>>;
export type Checkups = Records<Checkup, NewCheckup>;
export type LiveCheckups = LiveList<Checkup>;
