import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from '../../../clients/typescript/src/generated/openapi.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** By the types of clients/typescript, which openapi-typescript makes of the contract (`npm run check:drift`). */

type Pet = components['schemas']['Pet'];

let client: Client<paths>;
const store = storeForAll({}, async () => {
  client = createClient<paths>({ baseUrl: `${store.origin}/v1`, headers: { authorization: `Bearer ${store.key}` } });
});
beforeEach(() => store.empty());

async function created(name: string, status?: Pet['status']): Promise<Pet> {
  const { data, error } = await client.POST('/pets', {
    body: { name, categoryId: 5, ...(status && { status }) } as never,
  });
  if (!data) throw new Error(error.message);
  return data;
}

test('openapi-fetch creates, lists and fetches an animal', async () => {
  const rex = await created('Rex', 'sold');
  expect(rex).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 5, status: 'sold' });
  await created('Ada');
  expect((await client.GET('/pets', { params: { query: { status: 'sold' } } })).data).toEqual([rex]);
  expect((await client.GET('/pets/{petId}', { params: { path: { petId: rex.id } } })).data).toEqual(rex);
});

test('openapi-fetch walks the pages by their links', async () => {
  const all: Pet[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e']) all.push(await created(name));
  const walked: Pet[] = [];
  let after: bigint | undefined;
  for (;;) {
    const { data = [], response } = await client.GET('/pets', {
      params: { query: { limit: 2, ...(after && { after }) } },
    });
    walked.push(...data);
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    if (!next) break;
    after = BigInt(new URL(next).searchParams.get('after') ?? 0);
  }
  expect(walked).toEqual(all);
});

test('openapi-fetch gets every failure as a typed Error', async () => {
  const refused = await client.POST('/pets', { body: { name: 'Rex' } as never });
  expect(refused.error).toEqual({ code: 'BAD_USER_INPUT', message: 'categoryId is required.', status: 400 });
  const missing = await client.GET('/pets/{petId}', { params: { path: { petId: 0n } } });
  expect(missing.error).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  const unknown = await client.GET('/pets', { headers: { authorization: 'Bearer wrong' } });
  expect(unknown.error).toMatchObject({ code: 'UNAUTHENTICATED', status: 401 });
  const orders = await client.GET('/store/orders');
  expect(orders.error).toMatchObject({ code: 'NOT_IMPLEMENTED', status: 501 });
});
