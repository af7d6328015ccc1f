import {
  decimalSchema,
  int64Schema,
  moment,
  textSchema,
} from '@animal-store/engine';
import { resource } from '@animal-store/engine/resources';
import { defineEntity, p } from '@mikro-orm/core';
import { CustomerEntity, customer, ofClinic } from './people.ts';

export const animal = resource({
  name: 'Animal',
  description: 'An animal of a customer.',
  path: '/animals',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  members: {
    customerId: int64Schema({ description: 'Whose it is.' }),
    name: textSchema({ maxLength: 100, description: 'Its name.' }),
    chip: int64Schema({ description: 'The number of its chip.' }),
  },
  owner: ofClinic,
  relations: {
    customer: { by: 'customerId', to: () => customer.type, list: 'animals' },
  },
  filters: ['customerId'],
});

export const AnimalEntity = defineEntity({
  name: 'Animal',
  tableName: 'animal',
  properties: {
    ...animal.columns,
    customerId: () =>
      p.manyToOne(CustomerEntity).mapToPk().joinColumn('customer_id'),
  },
  indexes: [
    { properties: ['clinic', 'id'] },
    { properties: ['customerId', 'id'] },
  ],
});

export const visit = resource({
  name: 'Visit',
  description: 'An animal comes to the clinic.',
  path: '/visits',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    animalId: int64Schema({ description: 'The animal.' }),
    at: moment({ description: 'When it comes.' }),
    reason: textSchema({ minLength: 3, description: 'Why it comes.' }),
  },
  fixed: ['animalId'],
  owner: ofClinic,
  relations: {
    animal: { by: 'animalId', to: () => animal.type, list: 'visits' },
  },
  filters: ['animalId'],
  ranges: ['at'],
});

export const VisitEntity = defineEntity({
  name: 'Visit',
  tableName: 'visit',
  properties: {
    ...visit.columns,
    animalId: () => p.manyToOne(AnimalEntity).mapToPk().joinColumn('animal_id'),
  },
  indexes: [
    { properties: ['animalId', 'id'] },
    { properties: ['at', 'id'] },
    { properties: ['animalId', 'at', 'id'] },
    { properties: ['clinic', 'id'] },
    { properties: ['clinic', 'at', 'id'] },
  ],
});

export const treatment = resource({
  name: 'Treatment',
  description: 'What the vet does in a visit.',
  path: '/treatments',
  operations: ['list', 'find', 'remove'],
  members: {
    visitId: int64Schema({ description: 'The visit.' }),
    name: textSchema({ maxLength: 200, description: 'What is done.' }),
    price: decimalSchema(12, 2, { description: 'What it costs.' }),
  },
  owner: ofClinic,
  relations: {
    visit: { by: 'visitId', to: () => visit.type, list: 'treatments' },
  },
  filters: ['visitId'],
});

export const TreatmentEntity = defineEntity({
  name: 'Treatment',
  tableName: 'treatment',
  properties: {
    ...treatment.columns,
    visitId: () => p.manyToOne(VisitEntity).mapToPk().joinColumn('visit_id'),
  },
  indexes: [
    { properties: ['clinic', 'id'] },
    { properties: ['visitId', 'id'] },
  ],
});
