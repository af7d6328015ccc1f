import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import { Records } from '#engine/records/records.js';
import { select } from '#engine/records/select.js';
import { int64Schema, textSchema } from '#engine/validation/schemas.js';
import { migrationOf } from '../../support/migrations.ts';
import type { Repositories } from '../repositories/entity-records.ts';
import {
  type NewPatient,
  type NewStay,
  type Patient,
  PatientEntity,
  patient,
  type Stay,
  StayEntity,
  stay,
} from './patient.ts';

const kinds = operation({
  name: 'patientKinds',
  description: 'How many animals of each kind are there.',
  path: '/patient-kinds',
  input: Type.Object({}),
  output: Type.Array(
    Type.Object(
      {
        kind: textSchema({ description: 'The kind.' }),
        count: int64Schema({ description: 'How many.' }),
      },
      { $id: 'PatientKind', description: 'A kind of animals.' },
    ),
    { $id: 'PatientKinds', maxItems: 100 },
  ),
});
const kind = Type.Object({
  kind: textSchema({ description: 'The kind.' }),
  count: int64Schema({ description: 'How many.' }),
});

const columns =
  '"login" text, "sitter" text, "clinic" text not null, "version" int not null default 1';

/** A clinic with customers and sitters: callers of several audiences. */
export const clinicOn = (Collection: Repositories): Module[] => [
  {
    tag: { name: 'Clinic', description: 'Animals of customers.' },
    entities: [PatientEntity, StayEntity],
    migrations: [
      migrationOf('2027_03_02_000000_create_clinic', [
        `create table "patient" ("id" bigserial primary key, "name" text not null, "kind" text not null,
          "weight" int not null, ${columns}, unique ("clinic", "name"))`,
        'create unique index "patient_clinic" on "patient" ("clinic", "id")',
        `create table "stay" ("id" bigserial primary key, "patient_id" bigint not null,
          "room" text not null, ${columns},
          foreign key ("clinic", "patient_id") references "patient" ("clinic", "id") on delete cascade)`,
        'create index "stay_patient" on "stay" ("patient_id", "id")',
      ]),
    ],
    open({ database }) {
      const patients = new Collection<Patient, NewPatient>(
        database,
        PatientEntity,
        patient.lists,
      );
      const stays = new Collection<Stay, NewStay>(
        database,
        StayEntity,
        stay.lists,
      );
      return {
        service: { patients, stays },
        resources: [
          patient.serve(patients),
          stay.serve(stays, { related: { patient: patients } }),
          kinds.serve(
            database,
            (_, call) => select(call, kind)`
              select kind, count(*) as count from ${patients} as patient group by 1 order by 1`,
          ),
        ],
      };
    },
  },
  { tag: { name: 'Portal', description: 'Customers.' }, open: () => ({}) },
  { tag: { name: 'Sitters', description: 'Sitters.' }, open: () => ({}) },
];

export const clinicModules = clinicOn(Records);
