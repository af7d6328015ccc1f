import createClient from 'openapi-fetch';
import type { paths } from '../../../clients/typescript/src/generated/openapi.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The types are those of clients/typescript: openapi-typescript makes them of
 * the contract (`npm run check`).
 */

const store = storeForAll();

test('openapi-fetch creates, lists and fetches an animal, and gets every failure as a typed Error', async () => {
  const headers = { authorization: `Bearer ${store.key}` };
  const client = createClient<paths>({
    baseUrl: `${store.origin}/v1`,
    headers,
  });
  // openapi-fetch serializes with JSON.stringify, which refuses a bigint.
  const add = (name: string) =>
    client.POST('/pets', {
      body: { name, categoryId: 5, status: 'sold' } as never,
    });
  const { data: rex } = await add('Rex');
  const { data: tom } = await add('Tom');
  expect(rex).toEqual({
    id: expect.any(Number),
    name: 'Rex',
    categoryId: 5,
    status: 'sold',
  });
  expect(
    (await client.GET('/pets', { params: { query: { status: 'sold' } } })).data,
  ).toEqual([rex, tom]);
  const page = { limit: 1, after: rex?.id as bigint };
  expect((await client.GET('/pets', { params: { query: page } })).data).toEqual(
    [tom],
  );
  const path = { petId: rex?.id as bigint };
  expect(
    (await client.GET('/pets/{petId}', { params: { path } })).data,
  ).toEqual(rex);

  const refused = await client.POST('/pets', {
    body: { name: 'Rex' } as never,
  });
  expect(refused.error).toEqual({
    code: 'BAD_USER_INPUT',
    message: 'categoryId is required.',
    status: 400,
  });
  const missing = await client.GET('/pets/{petId}', {
    params: { path: { petId: 0n } },
  });
  expect(missing.error).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  const unknown = await client.GET('/pets', {
    headers: { authorization: 'Bearer wrong' },
  });
  expect(unknown.error).toMatchObject({ code: 'UNAUTHENTICATED', status: 401 });
  const orders = await client.GET('/store/orders');
  expect(orders.error).toMatchObject({ code: 'NOT_IMPLEMENTED', status: 501 });
});
