import { Type } from 'typebox';
import { operation } from '#engine/api/resources/operation.js';
import type { Database } from '#engine/database/database.js';
import type { Repository } from '#engine/records/repository.js';
import {
  type NewTreatment,
  type Treatment,
  TreatmentEntity,
  treatment,
} from './treatment.ts';
import { type NewVisit, type Visit, VisitEntity, visit } from './visit.ts';

const { visitId: _, ...ofTreatment } = treatment.schemas.input.properties;
export const fullVisit = operation({
  name: 'createFullVisit',
  description: 'Add a visit with its treatments',
  path: '/full-visits',
  creates: [VisitEntity, TreatmentEntity],
  input: Type.Object(
    {
      ...visit.schemas.input.properties,
      treatments: Type.Array(
        Type.Object(ofTreatment, {
          $id: 'TreatmentOfNewVisit',
          description: 'What the vet does in a new visit.',
        }),
        { minItems: 1, maxItems: 20, description: 'What the vet does in it.' },
      ),
    },
    { $id: 'NewFullVisit', description: 'A visit with its treatments.' },
  ),
  output: Type.Object(
    {
      ...visit.schemas.item.properties,
      treatments: Type.Array(treatment.schemas.item),
    },
    { $id: 'FullVisit', description: 'A visit with its treatments.' },
  ),
});

export const serveFullVisit = (
  database: Database,
  visits: Repository<Visit, NewVisit>,
  treatments: Repository<Treatment, NewTreatment>,
) =>
  fullVisit.serve(database, async ({ treatments: given, ...ofVisit }, call) => {
    const visit = await visits.create(ofVisit as NewVisit, call);
    const added: Treatment[] = [];
    for (const one of given) {
      const own = { ...one, visitId: visit.id } as NewTreatment;
      added.push(await treatments.create(own, call));
    }
    return { ...visit, treatments: added };
  });
