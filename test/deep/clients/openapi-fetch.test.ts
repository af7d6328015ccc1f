import { readFile } from 'node:fs/promises';
import createClient, { type Client } from 'openapi-fetch';
import openapiTypescript, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';
import type { components, paths } from './generated/openapi.js';

type Pet = components['schemas']['Pet'];

let client: Client<paths>;
const store = storeForAll({}, async () => {
  client = createClient<paths>({ baseUrl: `${store.origin}/v1`, headers: { authorization: `Bearer ${store.key}` } });
});
beforeEach(() => store.empty());

test('the types are those of the document that is served', async () => {
  const served = await (await fetch(`${store.origin}/v1/openapi.json`)).text();
  const types = `${COMMENT_HEADER}${astToString(await openapiTypescript(served))}`;
  // To renew them: npm run codegen
  expect(await readFile('test/deep/clients/generated/openapi.d.ts', 'utf8')).toBe(types);
});

describe('openapi-fetch', () => {
  async function created(name: string, status?: Pet['status']): Promise<Pet> {
    const { data, error } = await client.POST('/pets', {
      body: { name, categoryId: 5, ...(status && { status }) } as Pet,
    });
    if (!data) throw new Error(error.message);
    return data;
  }

  test('creates, lists and fetches an animal', async () => {
    const rex = await created('Rex', 'sold');
    expect(rex).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 5, status: 'sold' });
    await created('Ada');
    expect((await client.GET('/pets', { params: { query: { status: 'sold' } } })).data).toEqual([rex]);
    expect((await client.GET('/pets/{petId}', { params: { path: { petId: rex.id } } })).data).toEqual(rex);
  });

  test('walks the pages by their links', async () => {
    const all: Pet[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) all.push(await created(name));
    const walked: Pet[] = [];
    let after: number | undefined;
    for (;;) {
      const { data = [], response } = await client.GET('/pets', {
        params: { query: { limit: 2, ...(after && { after }) } },
      });
      walked.push(...data);
      const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
      if (!next) break;
      after = Number(new URL(next).searchParams.get('after'));
    }
    expect(walked).toEqual(all);
  });

  test('gets every failure as a typed Error', async () => {
    const refused = await client.POST('/pets', { body: { name: 'Rex' } as never });
    expect(refused.error).toEqual({ code: 'BAD_USER_INPUT', message: 'categoryId is required.', status: 400 });
    const missing = await client.GET('/pets/{petId}', { params: { path: { petId: 0 } } });
    expect(missing.error).toMatchObject({ code: 'NOT_FOUND', status: 404 });
    const unknown = await client.GET('/pets', { headers: { authorization: 'Bearer wrong' } });
    expect(unknown.error).toMatchObject({ code: 'UNAUTHENTICATED', status: 401 });
    const orders = await client.GET('/store/orders');
    expect(orders.error).toMatchObject({ code: 'NOT_IMPLEMENTED', status: 501 });
  });
});
