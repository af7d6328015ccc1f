import { citusLayout } from '../support/citus.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { visitsModule } from './visits/visits.module.ts';

/** A module whose rows refer to another table, are filtered twice, changed and removed (docs/add-a-module.md). */

// Citus allows a foreign key between distributed tables only when both are distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('visits', () => {
  const pets: number[] = [];
  const addPets = async () => {
    for (const name of ['Rex', 'Bello']) pets.push((await post('/v1/pets', { name, categoryId: 1 })).json.id);
  };
  const store = storeForAll({}, addPets, { more: [visitsModule] });

  const send = (method: string) => (path: string, json?: object) => rest(store, path, { method, json });
  const [post, patch, remove] = [send('POST'), send('PATCH'), send('DELETE')];
  const list = async (query: string) => (await rest(store, `/v1/visits?${query}`)).json;
  const visit = (petId: number, status = 'planned') => ({ petId, reason: 'vaccination', status });

  test('refer to pets: another id is refused, and the other creations of its batch are kept', async () => {
    const unknown = 9223372036854775807n;
    const responses = await Promise.all([
      ...pets.map((petId) => post('/v1/visits', visit(petId))),
      rest(store, '/v1/visits', { method: 'POST', body: `{"petId":${unknown},"reason":"x"}` }),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([201, 201, 400]);
    const message = `There is no animal with the id ${unknown}.`;
    expect(responses[2]?.json).toEqual({ code: 'BAD_USER_INPUT', message, status: 400 });
  });

  test('are filtered by two columns, page by page', async () => {
    const [rex] = pets;
    for (const status of ['done', 'planned', 'done']) await post('/v1/visits', visit(rex as number, status));
    const done = await list(`petId=${rex}&status=done`);
    expect(done).toMatchObject([visit(rex as number, 'done'), visit(rex as number, 'done')]);
    expect(await list(`petId=${rex}&status=done&limit=1&after=${done[0].id}`)).toEqual([done[1]]);
  });

  test('are changed and removed', async () => {
    const { json: created } = await post('/v1/visits', visit(pets[1] as number));
    const path = `/v1/visits/${created.id}`;
    expect((await patch(path, { status: 'done' })).json).toEqual({ ...created, status: 'done' });
    expect((await patch(path, { reason: 'x-ray' })).json).toEqual({ ...created, status: 'done', reason: 'x-ray' });
    expect((await remove(path)).status).toBe(204);
    const gone = { code: 'NOT_FOUND', message: 'There is no visit with this id.', status: 404 };
    for (const response of [await remove(path), await patch(path, {}), await remove('/v1/visits/x')]) {
      expect(response.json).toEqual(gone);
    }
  });
});
