import {
  type Database,
  decimalSchema,
  int64Schema,
  moment,
  type Records,
  textSchema,
} from '@animal-store/engine';
import {
  type ItemOf,
  type NewOf,
  operation,
  type Source,
  select,
} from '@animal-store/engine/resources';
import { Type } from 'typebox';
import { TreatmentEntity, treatment, VisitEntity, visit } from './visits.ts';

type Visit = ItemOf<typeof visit>;
type NewVisit = NewOf<typeof visit>;
type Treatment = ItemOf<typeof treatment>;
type NewTreatment = NewOf<typeof treatment>;

const { visitId: _, ...ofTreatment } = treatment.schemas.input.properties;
const described = { description: 'A visit with its treatments.' };

const fullVisit = operation({
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
    { $id: 'NewFullVisit', ...described },
  ),
  output: Type.Object(
    {
      ...visit.schemas.item.properties,
      treatments: Type.Array(treatment.schemas.item),
    },
    { $id: 'FullVisit', ...described },
  ),
});

export const serveFullVisit = (
  database: Database,
  visits: Records<Visit, NewVisit>,
  treatments: Records<Treatment, NewTreatment>,
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

const turnoverSchema = Type.Object(
  {
    name: textSchema({ description: 'What is done.' }),
    treatments: int64Schema({ description: 'How many.' }),
    total: decimalSchema(18, 2, { description: 'What they cost.' }),
  },
  { $id: 'Turnover', description: 'What a kind of treatment brought.' },
);
const turnover = operation({
  name: 'turnover',
  description: 'Sum the treatments of a time by their names',
  path: '/turnover',
  input: Type.Object({
    from: moment({ description: 'Its beginning.' }),
    before: moment({ description: 'Its end.' }),
  }),
  output: Type.Array(turnoverSchema, { $id: 'Turnovers', maxItems: 1000 }),
});

export const serveTurnover = (
  database: Database,
  visits: Source<Visit>,
  treatments: Source<Treatment>,
) =>
  turnover.serve(
    database,
    ({ from, before }, call) => select(call, turnoverSchema)`
      select name, count(*) as treatments, sum(price) as total
      from ${visits} as visit
        join ${treatments} as treatment on "visitId" = visit.id
      where visit."at" >= ${from} and visit."at" < ${before}
      group by 1 order by 1`,
  );
