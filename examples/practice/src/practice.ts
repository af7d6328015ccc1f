import { type Module, Records } from '@animal-store/engine';
import { CreatePractice } from '../migrations/2026_12_02_000000_create_practice.ts';
import { serveFullVisit, serveTurnover } from './operations.ts';
import { CustomerEntity, customer, NoteEntity, note } from './people.ts';
import {
  AnimalEntity,
  animal,
  TreatmentEntity,
  treatment,
  VisitEntity,
  visit,
} from './visits.ts';

export const practiceModule: Module = {
  tag: { name: 'Practice', description: 'Clinics for animals.' },
  entities: [
    CustomerEntity,
    NoteEntity,
    AnimalEntity,
    VisitEntity,
    TreatmentEntity,
  ],
  migrations: [
    { name: '2026_12_02_000000_create_practice', class: CreatePractice },
  ],
  open({ database }) {
    const customers = new Records(database, CustomerEntity, customer.lists);
    const notes = new Records(database, NoteEntity, note.lists);
    const animals = new Records(database, AnimalEntity, animal.lists);
    const visits = new Records(database, VisitEntity, visit.lists);
    const treatments = new Records(database, TreatmentEntity, treatment.lists);
    return {
      resources: [
        customer.serve(customers),
        note.serve(notes),
        animal.serve(animals, { related: { customer: customers } }),
        visit.serve(visits, { related: { animal: animals } }),
        treatment.serve(treatments, { related: { visit: visits } }),
        serveFullVisit(database, visits, treatments),
        serveTurnover(database, visits, treatments),
      ],
    };
  },
};
