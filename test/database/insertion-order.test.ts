import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { startStore } from '../support/store.ts';

test('creations of one batch get their own ids, in any order of the returned rows', async () => {
  const store = await startStore();
  const { rows } = store.database;
  store.database.rows = async (...statement) => {
    const returned = await rows.apply(store.database, statement);
    return (
      statement[0].name === 'insert_pet' ? returned.reverse() : returned
    ) as never;
  };
  const create = (name: string) =>
    rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 1 } });
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, at) => create(`pet ${at}`)),
  );
  for (const { json } of created)
    expect((await rest(store, `/v1/pets/${json.id}`)).json).toEqual(json);
  await store.close();
});
