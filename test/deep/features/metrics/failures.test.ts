// runs: embedded, postgres

import { Unavailable } from '#engine/errors.js';
import { measuring } from '../../../features/metrics/measured.ts';
import { creators } from '../../../support/apis.ts';
import { whileReadsFail } from '../../../support/database-access.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { afterEach, beforeEach, expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { type Store, startStore } from '../../../support/store.ts';

let measured: ReturnType<typeof measuring>;
let store: Store;
beforeEach(async () => {
  measured = measuring();
  const { parts } = measured;
  store = await startStore({}, { parts });
});
afterEach(() => store.close());

async function expectSeries(
  expected: Record<string, number | undefined>,
): Promise<void> {
  await eventually(async () => {
    const series = await measured.series();
    return Object.entries(expected).every(
      ([name, value]) => series.get(name) === value,
    );
  });
}

const lists = (error: string) =>
  `db_client_operation_duration_seconds_count{db_collection_name="pet",db_operation_name="list",error_type="${error}"}`;

test('a database failure is counted by code, and by the class of its SQLSTATE if PostgreSQL defines that class', async () => {
  await whileReadsFail(store.database, '57P03', async () => {
    await rest(store, '/v1/pets');
    await graphqlText(store, { query: '{ pets(limit: 3) { id } }' });
  });
  await whileReadsFail(store.database, 'ZZ001', () => rest(store, '/v1/pets'));
  await expectSeries({
    'animal_store_operations_total{api="rest",operation="listPets",code="SERVICE_UNAVAILABLE"}': 1,
    'animal_store_operations_total{api="graphql",operation="pets",code="SERVICE_UNAVAILABLE"}': 1,
    'animal_store_operations_total{api="rest",operation="listPets",code="INTERNAL_SERVER_ERROR"}': 1,
    [lists('57')]: 2,
    [lists('other')]: 1,
    [lists('')]: undefined,
  });
});

test('replayed responses and lost log lines are counted, for both APIs', async () => {
  const rex = { name: 'Rex', categoryId: 5 };
  for (const { create } of creators) {
    await create(store, rex, { once: 'a-name-for-it' });
    await create(store, { ...rex, name: 'Bello' }, { once: 'a-name-for-it' });
    await create(store, rex);
  }
  await creators[0]?.create(store, rex, { once: 'a-name-for-it' });
  await expectSeries({
    animal_store_idempotent_replays_total: 2,
    animal_store_log_lines_dropped_total: 7,
  });
});

test('an insertion with an unknown outcome counts as failed, with and without an Idempotency-Key', async () => {
  const { rows } = store.database;
  store.database.rows = async (statement, values) => {
    if (!statement.name.startsWith('insert_'))
      return rows.call(store.database, statement, values) as never;
    throw Unavailable.outcomeUnknown(
      Object.assign(new Error('this is a test'), { code: '08006' }),
    );
  };
  for (const { create } of creators) {
    for (const once of [undefined, 'a-name-for-it']) {
      expect(
        (await create(store, { name: 'Rex', categoryId: 5 }, { once })).outcome,
      ).toMatchObject({ status: 503 });
    }
  }
  store.database.rows = rows;
  await expectSeries({
    'db_client_operation_duration_seconds_count{db_collection_name="pet",db_operation_name="insert",error_type="08"}': 4,
  });
});
