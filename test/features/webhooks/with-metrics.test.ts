// runs: embedded, postgres

import { withRows } from '../../support/database-access.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';
import { measuring } from '../metrics/measured.ts';

const { parts, series } = measuring();
const store = storeForAll({ WEBHOOKS: 'true' }, undefined, { parts });

test('metrics do not wait for endpoints that cannot be read', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const found = await withRows(
    store.database,
    (rows) => async (statement, values) => {
      if (statement.name === 'webhook_states') await held;
      return rows(statement, values) as never;
    },
    () => series().finally(release),
  );
  const up = 'animal_store_dependency_up{dependency="postgresql"}';
  const active = 'animal_store_webhooks{state="active"}';
  expect([found.get(up), found.get(active)]).toEqual([1, undefined]);
  expect((await series()).get(active)).toBe(0);
});
