import { readFileSync } from 'node:fs';
import { citusLayout } from '../support/citus.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { visitsModule } from './visits/visits.module.ts';

/** A module whose rows refer to another table, are filtered twice, changed and removed (docs/add-a-module.md). */

test('the documentation shows what runs', () => {
  const [, chapter = ''] = readFileSync('docs/add-a-module.md', 'utf8').split('\n## Work');
  const files = ['visit.service.ts', 'visits.module.ts'].map((name) =>
    readFileSync(`test/modules/visits/${name}`, 'utf8'),
  );
  const lines = new Set(files.join('').split(/\n */));
  const shown = [...chapter.matchAll(/```ts\n([\s\S]*?)```/g)].flatMap(([, code = '']) => code.split('\n'));
  expect(shown.length).toBeGreaterThan(40);
  expect(shown.filter((line) => !lines.has(line.trim()))).toEqual([]);
});

// A foreign key between distributed tables needs both to be distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('visits', () => {
  const pets: number[] = [];
  const addPets = async () => {
    for (const name of ['Rex', 'Bello']) pets.push((await post('/v1/pets', { name, categoryId: 1 })).json.id);
  };
  const store = storeForAll({}, addPets, { more: [visitsModule] });

  const send = (method: string) => (path: string, json?: object, headers?: Record<string, string>) =>
    rest(store, path, { method, ...(json && { json }), ...(headers && { headers }) });
  const [post, patch, remove] = [send('POST'), send('PATCH'), send('DELETE')];
  const list = async (query: string) => (await rest(store, `/v1/visits?${query}`)).json;
  const visit = (petId: number, status = 'planned') => ({ petId, reason: 'vaccination', status });

  test('refer to pets: another id is refused, and the other creations of its batch are kept', async () => {
    const unknown = 9223372036854775807n;
    const answers = await Promise.all([
      ...pets.map((petId) => post('/v1/visits', visit(petId))),
      rest(store, '/v1/visits', { method: 'POST', body: `{"petId":${unknown},"reason":"x"}` }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 400]);
    const message = `There is no animal with the id ${unknown}.`;
    expect(answers[2]?.json).toEqual({ code: 'BAD_USER_INPUT', message, status: 400 });
  });

  test('are filtered by two columns, page by page', async () => {
    const [rex] = pets;
    for (const status of ['done', 'planned', 'done']) await post('/v1/visits', visit(rex as number, status));
    const done = await list(`petId=${rex}&status=done`);
    expect(done).toMatchObject([visit(rex as number, 'done'), visit(rex as number, 'done')]);
    expect(await list(`petId=${rex}&status=done&limit=1&after=${done[0].id}`)).toEqual([done[1]]);
  });

  test('are changed and removed, in REST and GraphQL', async () => {
    const { json: created } = await post('/v1/visits', visit(pets[1] as number));
    const path = `/v1/visits/${created.id}`;
    expect((await patch(path, { status: 'done' })).json).toEqual({ ...created, status: 'done' });
    const query = `mutation { changeVisit(id: ${created.id}, change: { reason: "x-ray" }) { id petId reason status } }`;
    const expected = { id: `${created.id}`, petId: `${pets[1]}`, reason: 'x-ray', status: 'done' };
    expect((await graphqlText(store, { query }, store.key)).data).toEqual({ changeVisit: expected });
    expect((await remove(path)).status).toBe(204);
    const gone = { code: 'NOT_FOUND', message: 'There is no visit with this id.', status: 404 };
    for (const answer of [await remove(path), await patch(path, {}), await remove('/v1/visits/x')]) {
      expect(answer.json).toEqual(gone);
    }
    const { errors } = await graphqlText(store, { query: `mutation { removeVisit(id: ${created.id}) }` }, store.key);
    expect(errors?.[0]).toMatchObject({ message: gone.message, extensions: { code: gone.code } });
  });

  test('a change or removal with an Idempotency-Key is refused, and nothing is done', async () => {
    const { json: created } = await post('/v1/visits', visit(pets[1] as number), { 'idempotency-key': 'one' });
    const key = { 'idempotency-key': 'two' };
    const message = 'This operation takes no Idempotency-Key: a repeated request is carried out again.';
    const path = `/v1/visits/${created.id}`;
    for (const answer of [await patch(path, { status: 'done' }, key), await remove(path, undefined, key)]) {
      expect(answer.json).toEqual({ code: 'BAD_USER_INPUT', message, status: 400 });
    }
    const query = `mutation { removeVisit(id: ${created.id}) }`;
    const { errors } = await graphqlText(store, { query }, store.key, key);
    expect(errors?.[0]).toMatchObject({ message, extensions: { code: 'BAD_USER_INPUT' } });
    expect(await list(`after=${created.id - 1}&limit=1`)).toEqual([created]);
  });

  test('need a key that may write', async () => {
    const { key } = await store.keys.issue({ name: 'reader', scope: 'read' });
    for (const method of ['PATCH', 'DELETE']) {
      const { status } = await rest(store, '/v1/visits/1', { method, key, ...(method === 'PATCH' && { json: {} }) });
      expect(status).toBe(403);
    }
  });
});
