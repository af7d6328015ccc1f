import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { StoreError } from '#engine/errors.js';
import {
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
  use,
  withDefault,
} from '#engine/validation/schemas.js';
import { PetEntity } from '../../../src/pets/pet.entity.ts';
import { PetType } from '../../../src/pets/pet.types.ts';
import { OwnerEntity, owner } from './owner.ts';

const states = {
  planned: 'planned',
  done: 'done',
  cancelled: 'cancelled',
} as const;
const state = enumSchema('VisitState', states, 'How far a visit is.');

export const visit = resource({
  name: 'Visit',
  description: 'An animal comes to the practice.',
  path: '/visits',
  operations: ['list', 'find', 'create', 'change', 'remove', 'follow'],
  members: {
    petId: int64Schema({ description: 'The animal.' }),
    ownerId: int64Schema({ description: 'Who brings it.' }),
    at: moment({ description: 'When it comes.' }),
    reason: textSchema({ minLength: 3, description: 'Why it comes.' }),
    note: Type.Optional(
      nullable(textSchema({ description: 'What the vet found.' })),
    ),
    state: withDefault(use(state, '`planned` when omitted.'), states.planned),
  },
  example: {
    petId: 1,
    ownerId: 1,
    at: '2030-12-05T09:30:00Z',
    reason: 'It limps.',
  },
  fixed: ['petId', 'ownerId'],
  computed: {
    weekday: {
      schema: Type.Integer({ description: 'From 0, Sunday, in UTC.' }),
      of: ({ at }) => at.getUTCDay(),
    },
  },
  filters: ['petId', 'ownerId'],
  orders: ['at'],
  relations: {
    pet: { by: 'petId', to: () => PetType, list: 'visits' },
    owner: { by: 'ownerId', to: () => owner.type, list: 'visits' },
  },
  transitions: {
    cancel: {
      description: 'Cancels a planned visit.',
      change({ state }) {
        if (state === states.planned) return { state: states.cancelled };
        throw new StoreError('CONFLICT', `The visit is ${state}.`);
      },
    },
  },
});
export type Visit = ItemOf<typeof visit>;
export type NewVisit = NewOf<typeof visit>;

export const VisitEntity = defineEntity({
  name: 'Visit',
  tableName: 'visit',
  properties: {
    ...visit.columns,
    petId: () =>
      p
        .manyToOne(PetEntity)
        .mapToPk()
        .joinColumn('pet_id')
        .deleteRule('cascade'),
    ownerId: () =>
      p
        .manyToOne(OwnerEntity)
        .mapToPk()
        .joinColumn('owner_id')
        .deleteRule('no action'),
  },
  indexes: [
    { properties: ['at', 'id'] },
    { properties: ['petId', 'id'] },
    { properties: ['petId', 'at', 'id'] },
    { properties: ['ownerId', 'id'] },
    { properties: ['ownerId', 'at', 'id'] },
    { properties: ['petId', 'ownerId', 'id'] },
    { properties: ['petId', 'ownerId', 'at', 'id'] },
  ],
});
