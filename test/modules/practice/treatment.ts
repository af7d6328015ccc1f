import { defineEntity, p } from '@mikro-orm/core';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import {
  decimalSchema,
  int64Schema,
  textSchema,
} from '#engine/validation/schemas.js';
import { VisitEntity, visit } from './visit.ts';

export const treatment = resource({
  name: 'Treatment',
  description: 'What the vet does in a visit.',
  path: '/treatments',
  operations: ['list', 'find', 'create', 'createMany', 'change', 'remove'],
  members: {
    visitId: int64Schema({ description: 'The visit.' }),
    name: textSchema({ maxLength: 200, description: 'What is done.' }),
    price: decimalSchema(12, 2, { description: 'What it costs.' }),
  },
  fixed: ['visitId'],
  filters: ['visitId'],
  relations: {
    visit: { by: 'visitId', to: () => visit.type, list: 'treatments' },
  },
});
export type Treatment = ItemOf<typeof treatment>;
export type NewTreatment = NewOf<typeof treatment>;

export const TreatmentEntity = defineEntity({
  name: 'Treatment',
  tableName: 'treatment',
  properties: {
    ...treatment.columns,
    visitId: () =>
      p
        .manyToOne(VisitEntity)
        .mapToPk()
        .joinColumn('visit_id')
        .deleteRule('cascade'),
  },
  indexes: [{ properties: ['visitId', 'id'] }],
});
