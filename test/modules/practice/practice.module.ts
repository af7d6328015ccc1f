import type { Module } from '#engine/api/module.js';
import { Records } from '#engine/records/records.js';
import { petsModule } from '../../../src/pets/pets.module.ts';
import type { Repositories } from '../repositories/entity-records.ts';
import { CreatePractice } from './create-practice.ts';
import { serveFullVisit } from './full-visit.ts';
import { type NewOwner, type Owner, OwnerEntity, owner } from './owner.ts';
import { serveReports } from './reports.ts';
import {
  type NewPetTag,
  type NewTag,
  type PetTag,
  PetTagEntity,
  petTag,
  type Tag,
  TagEntity,
  tag,
} from './tag.ts';
import {
  type NewTreatment,
  type Treatment,
  TreatmentEntity,
  treatment,
} from './treatment.ts';
import { type NewVisit, type Visit, VisitEntity, visit } from './visit.ts';

/** A veterinary practice: five tables beside that of pets. */
export const practiceOn = (Collection: Repositories): Module => ({
  tag: { name: 'Practice', description: 'A veterinary practice.' },
  entities: [
    OwnerEntity,
    VisitEntity,
    TreatmentEntity,
    TagEntity,
    PetTagEntity,
  ],
  migrations: [
    { name: '2027_02_01_000000_create_practice', class: CreatePractice },
  ],
  open({ database, serviceOf }) {
    const pet = serviceOf(petsModule);
    const owners = new Collection<Owner, NewOwner>(
      database,
      OwnerEntity,
      owner.lists,
    );
    const visits = new Collection<Visit, NewVisit>(
      database,
      VisitEntity,
      visit.lists,
    );
    const treatments = new Collection<Treatment, NewTreatment>(
      database,
      TreatmentEntity,
      treatment.lists,
    );
    const tags = new Collection<Tag, NewTag>(database, TagEntity, tag.lists);
    const petTags = new Collection<PetTag, NewPetTag>(
      database,
      PetTagEntity,
      petTag.lists,
    );
    return {
      resources: [
        owner.serve(owners),
        visit.serve(visits, {
          related: { pet, owner: owners },
        }),
        treatment.serve(treatments, { related: { visit: visits } }),
        tag.serve(tags),
        petTag.serve(petTags, { related: { pet, tag: tags } }),
        serveFullVisit(database, visits, treatments),
        ...serveReports(database, owners, visits, treatments),
      ],
    };
  },
});

export const practiceModule = practiceOn(Records);
