import { readFileSync } from 'node:fs';
import { graphqlText } from '../../support/graphql.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/** Members that would poison the prototype of every object are unknown members like any other: ignored, on both faces. */

const store = storeForAll({}, async () => {});
beforeEach(() => store.empty());
afterEach(() => {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});
beforeEach(() => store.empty());

const poisons = [
  '"__proto__":{"polluted":1}',
  '"\\u005f\\u005fproto\\u005f_":{"polluted":1}',
  '"__proto__":null',
  '"__proto__":[{"__proto__":{"polluted":1}}]',
  '"constructor":{"prototype":{"polluted":1}}',
  '"\\u0063onstructor":{"prototype":{"polluted":1}}',
  '"constructor":{"__proto__":{"prototype":{"polluted":1}}}',
];

/** At the top, and below objects and arrays of any number; beside numbers that are read in another way, too. */
const places: Array<[string, (poison: string) => string]> = [
  ['at the top', (poison) => poison],
  ['beside a number with an exponent', (poison) => `"x":1e3,${poison}`],
  ['in an object', (poison) => `"x":{${poison}}`],
  ['in an array', (poison) => `"x":[1,{${poison}}]`],
  ['100 objects deep', (poison) => `${'"x":{'.repeat(100)}${poison}${'}'.repeat(100)}`],
  ['1000 arrays deep', (poison) => `"x":${'['.repeat(1000)}{${poison}}${']'.repeat(1000)}`],
  ['beside a long number, deep inside', (poison) => `"y":12345678901234567890,"x":[[{"z":[{${poison}}]}]]`],
];

describe.each(places)('%s', (_where, at) => {
  test.each(poisons)('%s is ignored', async (poison) => {
    const body = `{"name":"Rex","categoryId":1,${at(poison)}}`;
    const { status, json, headers } = await rest(store, '/v1/pets', { method: 'POST', body });
    expect({ status, json }).toEqual({
      status: 201,
      json: { id: expect.any(Number), name: 'Rex', categoryId: 1, status: 'available' },
    });
    expect(headers).not.toHaveProperty('location');
    expect((await rest(store, '/v1/pets')).json).toEqual([json]);

    const query = 'query ($id: ID!) { pet(id: $id) { name } }';
    const request = `{"query":${JSON.stringify(query)},"variables":{"id":${json.id},${at(poison)}},${at(poison)}}`;
    const answer = await graphqlText(store, request);
    expect([answer.status, answer.data]).toEqual([200, { pet: { name: 'Rex' } }]);
  });
});

test.each(['"__proto__":{"name":"Rex","categoryId":1}', '"constructor":{"prototype":{"name":"Rex","categoryId":1}}'])(
  'what stands in %s is no part of the animal',
  async (poison) => {
    const missing = await rest(store, '/v1/pets', { method: 'POST', body: `{${poison}}` });
    const message = 'name is required; categoryId is required.';
    expect(missing.json).toEqual({ code: 'BAD_USER_INPUT', message, status: 400 });
    const body = '{"name":"Rex","categoryId":1,"__proto__":{"status":"sold"}}';
    expect((await rest(store, '/v1/pets', { method: 'POST', body })).json).toMatchObject({ status: 'available' });
  },
);

test('201 has no Location, and the decisions say so', async () => {
  const created = await rest(store, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 1 } });
  expect(created.status).toBe(201);
  expect(created.headers).not.toHaveProperty('location');
  expect(readFileSync('docs/decisions.md', 'utf8')).toMatch(/^\*\*`Location` on 201\.\*\* None:/m);
});
