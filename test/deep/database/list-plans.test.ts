// runs: postgres

import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { Type } from 'typebox';
import { resource } from '#engine/api/resources/resource.js';
import { TenantKeys } from '#engine/database/tenant-keys.js';
import {
  ListInterpreter,
  type Listing,
  parametersOf,
} from '#engine/records/lists/query.js';
import { seenBy } from '#engine/records/rows/ownership.js';
import { Table } from '#engine/records/rows/table.js';
import type { Lists } from '#engine/validation/list-query.js';
import { int64Schema, moment, textSchema } from '#engine/validation/schemas.js';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** How many of 100,000 rows a page reads, in every order, by every filter. */

const store = storeForAll({ DATABASE_STATEMENT_TIMEOUT_MS: '100000' });
const limit = 20;

type Plan = {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Plan[];
};

/** The rows that scans of tables read, with those that they discard. */
function scanned(plan: Plan): number {
  const isOfTable = /^Index|Seq|Heap/.test(plan['Node Type']);
  const own = isOfTable
    ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) *
      plan['Actual Loops']
    : 0;
  const below = (plan.Plans ?? []).map(scanned);
  return below.reduce((sum, one) => sum + one, own);
}

/** What a scan passes beside its rows, it reads in blocks of the index. */
function blocksRead(plan: Plan): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

const inLowerCase = (name: string, keys: string) => ({
  name,
  expression: `create index "${name}" on "visit" (${keys})`,
});
const byName = 'lower("name") collate "C", "id"';
const VisitEntity = defineEntity({
  name: 'Visit',
  tableName: 'visit',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    code: p.text(),
    state: p.enum(['planned', 'done', 'never']),
    petId: p.bigint('bigint').nullable(),
    at: p.datetime(),
    name: p.text(),
  },
  indexes: [
    { properties: ['state', 'id'] },
    { properties: ['petId', 'id'] },
    { properties: ['state', 'petId', 'id'] },
    { properties: ['at', 'id'] },
    { properties: ['state', 'at', 'id'] },
    { properties: ['petId', 'at', 'id'] },
    { properties: ['petId', 'state', 'at', 'id'] },
    inLowerCase('visit_name', byName),
    inLowerCase('visit_state_name', `"state", ${byName}`),
    inLowerCase('visit_pet_name', `"pet_id", ${byName}`),
    inLowerCase('visit_pet_state_name', `"pet_id", "state", ${byName}`),
  ],
  uniques: [{ properties: ['code'] }],
});

const lists: Lists = {
  filters: ['code'],
  in: ['state'],
  nulls: ['petId'],
  combinations: [
    ['state'],
    ['petId'],
    ['petId', 'state'],
    ['code'],
    ['code', 'state'],
  ],
  ranges: ['at'],
  prefixes: ['name'],
};

// One state is rare, and one has no rows.
const rows = `insert into visit (code, state, pet_id, at, name)
  select 'c' || n, case when n % 1000 = 0 then 'done' else 'planned' end,
    case when n % 7 > 0 then n % 50 end,
    timestamptz '2026-01-01' + n * interval '5 minutes' + (n * 7919 % 60) * interval '1 minute',
    (array['Rex', 'rexa', 'Bello', 'Ännchen', 'zorro'])[1 + n % 5] || ' ' || n
  from generate_series(1, 100000) n`;

const filters = [
  {},
  { state: 'planned' },
  { state: 'done' },
  { state: 'never' },
  { state_in: ['done', 'never', 'planned'] },
  { petId: 7 },
  { petId_is_null: true },
  { petId: 7, state: 'done' },
  { petId: 7, state: 'planned' },
  // No rows, before the many others of the first filter.
  { petId: -1, state: 'planned' },
  { petId_is_null: true, state: 'planned' },
  { petId_is_null: true, state_in: ['planned', 'done'] },
  { code: 'c50000', state: 'planned' },
  { code: 'c50000' },
];
const orders = [
  {},
  { sort: 'id_desc' },
  { sort: 'at' },
  { sort: 'at_desc' },
  { at_gte: new Date('2026-06-01') },
  { at_lt: new Date('2026-06-01') },
  { at_lt: new Date('2026-06-01'), sort: 'at_desc' },
  { at_gt: new Date('2026-06-01'), at_lte: new Date('2026-06-02') },
  // A few rows, where the index has many more of each filter.
  {
    at_gte: new Date('2026-02-01T00:00Z'),
    at_lt: new Date('2026-02-01T00:20Z'),
  },
  {
    at_gte: new Date('2026-11-01T00:00Z'),
    at_lt: new Date('2026-11-01T00:20Z'),
    sort: 'at_desc',
  },
  { at_gt: new Date('2026-06-02'), at_lte: new Date('2026-06-01') },
  {
    at_gt: new Date('2026-02-01'),
    at_lte: new Date('2026-10-02'),
    sort: 'at_desc',
  },
  { sort: 'name' },
  { sort: 'name_desc' },
  { name_prefix: 'REX' },
  { name_prefix: 'rex 101' },
  { name_prefix: 'rex 99', sort: 'name_desc' },
];
const places = {
  id: '50000',
  at: '2026-06-01',
  start: '2026-06-01',
  name: 'rex 51',
};

function placeIn({ sort = '', ...others }: Record<string, unknown>): string {
  const ends = Object.keys(others).map((name) => name.replace(/_.*/, ''));
  const [by = 'id'] = [`${sort}`.replace(/_desc$/, '') || ends[0]];
  const member = by as keyof typeof places;
  const cursor = JSON.stringify([member, places[member], '50000']);
  return member === 'id' ? '50000' : Buffer.from(cursor).toString('base64url');
}

const queries = orders.flatMap((order) =>
  [{}, { after: placeIn(order) }, { before: placeIn(order) }].flatMap((place) =>
    filters
      .map((filter) => ({ ...filter, ...order, ...place, limit }))
      .filter(isListed),
  ),
);

/** Nulls with other filters are in the order of ids only. */
function isListed(query: Record<string, unknown>): boolean {
  const isWithOthers = 'state' in query || 'state_in' in query;
  const { sort = 'id', ...others } = query;
  const isById =
    `${sort}`.startsWith('id') && !/(at|name)_/.test(`${Object.keys(others)}`);
  return !('petId_is_null' in query && isWithOthers) || isById;
}

/** A table of the practice, with rows of tenants and their customers. */
const clinic = textSchema({ maxLength: 20, description: 'The clinic.' });
const named = (name: string) =>
  resource({
    name,
    description: 'Of a clinic.',
    path: `/${name.toLowerCase()}s`,
    operations: ['list'],
    members: { name: clinic },
    owner: { member: 'clinic', by: 'tenant' },
  });
const entityOf = (name: string) =>
  defineEntity({
    name,
    tableName: name.toLowerCase(),
    properties: named(name).columns,
    indexes: [{ properties: ['clinic', 'id'] }],
  });
const AnimalEntity = entityOf('Animal');
const VetEntity = entityOf('Vet');
const appointment = resource({
  name: 'Appointment',
  description: 'When an animal comes.',
  path: '/appointments',
  operations: ['list'],
  members: {
    animalId: int64Schema({ description: 'Which.' }),
    vetId: int64Schema({ description: 'To whom.' }),
    day: Type.String({ format: 'date', description: 'When.' }),
    start: moment({ description: 'When.' }),
  },
  audiences: [
    { scope: 'practice', rows: { clinic: 'tenant' } },
    { scope: 'portal', rows: { clinic: 'tenant', login: 'subject' } },
  ],
  filters: ['animalId', 'vetId', 'day'],
  combinations: [['animalId'], ['vetId'], ['day'], ['vetId', 'day']],
  few: ['animalId', 'day', 'login'],
  ranges: ['start'],
});
const AppointmentEntity = defineEntity({
  name: 'Appointment',
  tableName: 'appointment',
  properties: {
    ...appointment.columns,
    animalId: () => p.manyToOne(AnimalEntity).mapToPk().joinColumn('animal_id'),
    vetId: () => p.manyToOne(VetEntity).mapToPk().joinColumn('vet_id'),
  },
  indexes: [
    { properties: ['clinic', 'id'] },
    { properties: ['clinic', 'start', 'id'] },
    { properties: ['clinic', 'day', 'id'] },
    { properties: ['clinic', 'login', 'id'] },
    { properties: ['animalId', 'id'] },
    { properties: ['vetId', 'id'] },
    { properties: ['vetId', 'start', 'id'] },
  ],
});
// A few rows each: 50 of an animal and of a clinic's day, 200 of a customer. The
// last 1,000 are of the customer 7, and none of 8.
const appointments = `
  insert into animal (clinic, name) select n % 5, n from generate_series(1, 2000) n;
  insert into vet (clinic, name) select n % 5, n from generate_series(1, 20) n;
  insert into appointment (animal_id, vet_id, day, start, clinic, login)
  select 1 + (n - 1) % 2000, 1 + (n - 1) % 20,
    date '2026-01-01' + n / 250, timestamptz '2026-01-01' + n * interval '5 minutes',
    n % 5, case when n > 95000 then 7 else 10 + n * 7919 % 500 end
  from generate_series(1, 100000) n`;
const views = [
  { at: 0, values: { clinic: '1' } },
  { at: 1, values: { clinic: '1', login: '7' } },
  { at: 1, values: { clinic: '1', login: '8' } },
  { at: 1, values: { clinic: '1', login: '14' } },
];
const ofAppointments = [
  {},
  { animalId: 21 },
  { vetId: 6 },
  { day: '2026-03-01' },
  { vetId: 6, day: '2026-03-01' },
];
const starts = [
  {},
  { sort: 'start' },
  { sort: 'start_desc' },
  { start_gte: new Date('2026-06-01') },
  { start_gt: new Date('2026-06-01'), start_lte: new Date('2026-06-02') },
];

let visits: Table;
let ofTenants: Table;
beforeAll(async () => {
  const entities = [VisitEntity, AnimalEntity, VetEntity, AppointmentEntity];
  const orm = await MikroORM.init({
    entities,
    dbName: 'none',
    extensions: [TenantKeys],
  });
  visits = new Table(orm.getMetadata(VisitEntity));
  ofTenants = new Table(orm.getMetadata(AppointmentEntity));
  const schema = (await orm.schema.getCreateSchemaSQL()).split(/;\s*\n/);
  const isTable = (text: string) => /^\s*create table/.test(text);
  const tables = schema.filter(isTable);
  // Indexes are built after the rows, in a fraction of the time.
  const indexes = schema.filter((text) => !isTable(text));
  await store.database.withSession(async (session) => {
    for (const text of [...tables, rows, appointments, ...indexes, 'analyze'])
      await session.query(text);
  });
  await orm.close(true);
});

/** A page thrice, or the rows of a value that has few. */
const mostRead = ({ shape }: Listing) =>
  shape.parts.some(({ isShort }) => isShort) ? 1100 : 3 * (limit + 1);

/** How many rows or blocks each list reads, alone and with others. */
async function readBy(
  mode: string,
  listings: ListInterpreter,
  all: Array<Record<string, unknown>>,
) {
  return store.database.withSession(async (session) => {
    await session.query('begin');
    await session.query(`set local plan_cache_mode = force_${mode}_plan`);
    const read = async (text: string, parameters: unknown[]) => {
      await session.query(`prepare listing as ${text}`);
      const array = (values: unknown[]) =>
        `{${values.map((one) => (one === null ? 'null' : JSON.stringify(one)))}}`;
      const literals = parameters.map((one) =>
        session.escapeLiteral(Array.isArray(one) ? array(one) : `${one}`),
      );
      const { rows } = await session.query(
        `explain (analyze, buffers, format json) execute listing(${literals})`,
      );
      await session.query('deallocate listing');
      const { Plan: plan } = rows[0]['QUERY PLAN'][0];
      return Math.max(scanned(plan), blocksRead(plan));
    };
    const found: Array<[name: string, rows: number, most: number]> = [];
    const families = new Map<string, Listing[]>();
    for (const query of all) {
      const list = listings.interpret(query);
      const { page } = list.shape;
      const name = JSON.stringify(query);
      const values = await read(page.text, parametersOf(page, list));
      found.push([name, values, mostRead(list)]);
      const { family } = list.shape;
      families.set(family, [...(families.get(family) ?? []), list]);
    }
    for (const [family, together] of families) {
      const [{ shape }] = together as [Listing];
      const many = listings.together(shape);
      const parameters = together.map((list) => parametersOf(many, list));
      const columns = many.slots.map((_, at) =>
        parameters.map((values) => values[at]),
      );
      const values = await read(many.text, columns);
      const most = together.map(mostRead).reduce((sum, one) => sum + one);
      found.push([`${family} together`, values, most]);
    }
    await session.query('rollback');
    return found;
  });
}

describe.each(['custom', 'generic'])('with %s plans', (mode) => {
  test('each list reads no more than three times its page', async () => {
    const listings = new ListInterpreter(visits, lists);
    const found = await readBy(mode, listings, queries);
    const above = found.filter(([, read, most]) => read > most);
    expect(above.map((one) => one.join(' '))).toEqual([]);
    expect(found.length).toBeGreaterThan(queries.length);
  });

  test('so does one of a tenant by a relation, whose index has no tenant; by a member of few rows it reads these', async () => {
    const listings = new ListInterpreter(
      ofTenants,
      appointment.lists as never,
      appointment.lists.audiences as never,
    );
    const all = views.flatMap((view) =>
      starts.flatMap((order) =>
        ofAppointments.flatMap((filter) =>
          [{}, { after: placeIn(order) }, { before: placeIn(order) }].map(
            (place) => ({
              [seenBy]: [view],
              ...order,
              ...filter,
              ...place,
              limit,
            }),
          ),
        ),
      ),
    );
    const found = await readBy(mode, listings, all);
    const above = found.filter(([, read, most]) => read > most);
    expect(above.map((one) => one.join(' '))).toEqual([]);
    expect(found.length).toBeGreaterThan(all.length);
  });
});
