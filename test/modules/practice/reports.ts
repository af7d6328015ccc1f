import { Type } from 'typebox';
import { operation } from '#engine/api/resources/operation.js';
import { failure } from '#engine/api/rest/documented-responses.js';
import type { Database } from '#engine/database/database.js';
import { StoreError } from '#engine/errors.js';
import { type Source, select } from '#engine/records/select.js';
import {
  decimalSchema,
  int64Schema,
  moment,
  textSchema,
} from '#engine/validation/schemas.js';
import { type Owner, owner } from './owner.ts';
import { type Treatment, treatment } from './treatment.ts';
import { type Visit, visit } from './visit.ts';

const petId = int64Schema({ description: 'The animal.' });
const ownerId = int64Schema({ description: 'The owner.' });
const from = moment({ description: 'Its beginning.' });
const before = moment({ description: 'Its end.' });
const count = int64Schema({ description: 'How many.' });
const total = decimalSchema(18, 2, { description: 'What they cost.' });

const monthSchema = Type.Object(
  { month: from, visits: count, total },
  { $id: 'MonthOfPet', description: 'The visits of an animal in a month.' },
);
export const monthsOfPet = operation({
  name: 'monthsOfPet',
  description: 'Sum the visits of an animal by month',
  path: '/months-of-pets',
  input: Type.Object({ petId }),
  output: Type.Array(monthSchema, { $id: 'MonthsOfPet', maxItems: 1000 }),
});

const name = textSchema({ description: 'What is done.' });
const turnoverSchema = Type.Object(
  { name, treatments: count, total },
  { $id: 'Turnover', description: 'What a kind of treatment brought.' },
);
export const turnover = operation({
  name: 'turnover',
  description: 'Sum the treatments of a time by their names',
  path: '/turnover',
  input: Type.Object({ from, before }),
  output: Type.Array(turnoverSchema, { $id: 'Turnovers', maxItems: 1000 }),
});

const visitsOf = Type.Array(visit.schemas.item);
const treatmentsOf = Type.Array(treatment.schemas.item);
export const file = operation({
  name: 'fileOfOwner',
  description: 'Export what is known of an owner',
  path: '/files',
  input: Type.Object({ ownerId }),
  output: Type.Object(
    { owner: owner.schemas.item, visits: visitsOf, treatments: treatmentsOf },
    { $id: 'FileOfOwner', description: 'An owner, with all visits.' },
  ),
  failures: { 404: failure('NOT_FOUND', 'No such owner.', 'There is none.') },
});

export const serveReports = (
  database: Database,
  owners: Source<Owner>,
  visits: Source<Visit>,
  treatments: Source<Treatment>,
) => [
  monthsOfPet.serve(
    database,
    ({ petId }, call) => select(call, monthSchema)`
      select date_trunc('month', visit."at", 'UTC') as month,
        count(distinct visit.id) as visits, coalesce(sum(price), 0) as total
      from ${visits} as visit left join ${treatments} as treatment on "visitId" = visit.id
      where "petId" = ${petId} group by 1 order by 1`,
  ),
  turnover.serve(
    database,
    ({ from, before }, call) => select(call, turnoverSchema)`
      select name, count(*) as treatments, sum(price) as total
      from ${visits} as visit join ${treatments} as treatment on "visitId" = visit.id
      where visit."at" >= ${from} and visit."at" < ${before} group by 1 order by 1`,
  ),
  file.serve(database, async ({ ownerId }, call) => {
    const owner = await owners.find(ownerId, call);
    if (!owner) throw new StoreError('NOT_FOUND', 'There is no such owner.');
    const [own, done] = await Promise.all([
      select(call, visits)`
        select * from ${visits} as visit where "ownerId" = ${ownerId} order by id`,
      select(call, treatments)`
        select treatment.* from ${visits} as visit join ${treatments} as treatment on "visitId" = visit.id
        where "ownerId" = ${ownerId} order by treatment.id`,
    ]);
    return { owner, visits: own, treatments: done };
  }),
];
