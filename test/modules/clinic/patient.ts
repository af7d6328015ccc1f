import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import {
  int64Schema,
  nullable,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';

const person = (description: string) =>
  Type.Optional(nullable(textSchema({ maxLength: 100, description })));

/** Staff see their clinic, customers and sitters what names them. */
const audiences = [
  { scope: 'clinic', rows: { clinic: 'tenant' } },
  { scope: 'portal', rows: { clinic: 'tenant', login: 'subject' } },
  { scope: 'sitters', rows: { sitter: 'subject', clinic: 'tenant' } },
  { scope: 'clinic:all', rows: {} },
] as const;

const operations = [
  ...(['list', 'find', 'create', 'createMany'] as const),
  ...(['change', 'remove', 'follow'] as const),
];

export const patient = resource({
  name: 'Patient',
  description: 'An animal of a customer.',
  path: '/patients',
  operations,
  members: {
    name: textSchema({ maxLength: 100, description: 'Its name.' }),
    kind: textSchema({ maxLength: 20, description: 'What it is.' }),
    weight: withDefault(
      Type.Integer({ minimum: 0, maximum: 1000, description: 'In kg.' }),
      1,
    ),
    login: person('Whose it is.'),
    sitter: person('Who sits it.'),
  },
  audiences,
  filters: ['kind', 'login'],
  in: ['kind'],
  combinations: [['kind'], ['login']],
  few: ['login'],
  ranges: ['weight'],
});
export type Patient = ItemOf<typeof patient>;
export type NewPatient = NewOf<typeof patient>;

const ofFew = ['clinic', 'login'];

/** For each audience, and each combination of filters. */
function indexesFor(combinations: string[][], orders: string[][]) {
  const views = [[], ['clinic'], ['clinic', 'login'], ['sitter', 'clinic']];
  const all = views.flatMap((view) =>
    [[], ...combinations].flatMap((one) =>
      orders.map((order) => [...new Set([...view, ...one]), ...order, 'id']),
    ),
  );
  const distinct = new Map(all.map((one) => [one.toSorted().join(), one]));
  distinct.delete('id');
  return [...distinct.values()].map((properties, at) => ({
    name: `index_${at}_${properties.join('_').toLowerCase()}`,
    properties: properties as never,
  }));
}

export const PatientEntity = defineEntity({
  name: 'Patient',
  tableName: 'patient',
  properties: patient.columns,
  // One serves all lists of a login.
  indexes: indexesFor([['kind'], ['login']], [[], ['weight']]).filter(
    ({ properties }) =>
      `${properties}` === `${ofFew},id` ||
      !ofFew.every((one) => `${properties}`.split(',').includes(one)),
  ),
  uniques: [{ properties: ['clinic', 'name'] }],
});

export const stay = resource({
  name: 'Stay',
  description: 'A stay of an animal.',
  path: '/stays',
  operations,
  members: {
    patientId: int64Schema({ description: 'The animal.' }),
    room: textSchema({ maxLength: 20, description: 'Where it stays.' }),
    login: person('Whose animal it is.'),
    sitter: person('Who sits it.'),
  },
  audiences,
  filters: ['patientId'],
  relations: {
    patient: { by: 'patientId', to: () => patient.type, list: 'stays' },
  },
});
export type Stay = ItemOf<typeof stay>;
export type NewStay = NewOf<typeof stay>;

export const StayEntity = defineEntity({
  name: 'Stay',
  tableName: 'stay',
  properties: {
    ...stay.columns,
    patientId: () =>
      p
        .manyToOne(PatientEntity)
        .mapToPk()
        .joinColumn('patient_id')
        .deleteRule('cascade'),
  },
  indexes: [...indexesFor([['patientId']], [[]])],
});
