import { Type } from 'typebox';
import { success } from '../../src/api/rest/responses.ts';
import type { Module } from '../../src/module.ts';
import { send } from '../support/http.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { type Store, startStore } from '../support/store.ts';

/** Methods that the pets do not have, in a module that changes and removes. */

const thing = success(Type.Object({ seen: Type.String() }, { $id: 'Thing' }), 'A thing.');
const things: Module = {
  tag: { name: 'Things', description: 'Changed and removed.' },
  open: () => ({
    routes(app) {
      const config = { scope: 'write' } as const;
      const removal = { operationId: 'removeThing', response: { 200: thing } };
      app.delete('/things', { schema: removal, config }, async ({ body }) => ({ seen: `${JSON.stringify(body)}` }));
      const change = {
        operationId: 'changeThing',
        body: Type.Object({ name: Type.String({ maxLength: 5 }) }, { $id: 'Change' }),
        response: { 200: thing },
      };
      app.patch('/things', { schema: change, config }, async ({ body }) => ({ seen: JSON.stringify(body) }));
    },
  }),
};

let store: Store;
beforeAll(async () => {
  store = await startStore({ CORS_ORIGINS: 'https://shop.example' }, { more: [things] });
});
afterAll(() => store.close());

test('a removal needs no body, and gets none that nothing has validated', async () => {
  expect(await rest(store, '/v1/things', { method: 'DELETE' })).toMatchObject({
    status: 200,
    json: { seen: 'undefined' },
  });
  const { json } = await rest(store, '/v1/things', { method: 'DELETE', json: { name: 'Rex' } });
  expect(json).toEqual({ seen: 'undefined' });
});

test('a change is validated', async () => {
  const change = (name: string) => rest(store, '/v1/things', { method: 'PATCH', json: { name, other: 1 } });
  expect(await change('Rex')).toMatchObject({ status: 200, json: { seen: '{"name":"Rex"}' } });
  expect(await change('longer')).toMatchObject({ status: 400 });
});

test('browsers may use the methods that routes have', async () => {
  const headers = { origin: 'https://shop.example', 'access-control-request-method': 'PATCH' };
  const preflight = await send(store.origin, { method: 'OPTIONS', path: '/v1/things', headers });
  expect(preflight.headers['access-control-allow-methods']).toBe('DELETE, GET, HEAD, PATCH, POST');
});
