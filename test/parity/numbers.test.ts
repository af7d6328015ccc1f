// runs: embedded, postgres
import { defineEntity } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** Numbers that are doubles, as clients spell them. */

const weight = resource({
  name: 'Weight',
  description: 'What something weighs.',
  path: '/weights',
  operations: ['create'],
  members: { grams: Type.Number({ description: 'In grams.' }) },
});
type Weight = ItemOf<typeof weight>;
type NewWeight = NewOf<typeof weight>;
const WeightEntity = defineEntity({
  name: 'Weight',
  tableName: 'weight',
  properties: weight.columns,
});
const weights: Module = {
  tag: { name: 'Weights', description: 'Weights.' },
  entities: [WeightEntity],
  migrations: [
    migrationOf('2027_05_01_000000_create_weight', [
      `create table "weight" ("id" bigserial primary key,
        "grams" double precision not null, "version" int not null default 1)`,
    ]),
  ],
  open({ database }) {
    const records = new Records<Weight, NewWeight>(
      database,
      WeightEntity,
      weight.lists,
    );
    return { resources: [weight.serve(records)] };
  },
};
const store = storeForAll({}, undefined, { more: [weights] });

type Add = (grams: string) => Promise<{ grams?: unknown; code?: string }>;
const byRest: Add = async (grams) => {
  const body = `{ "grams": ${grams} }`;
  const { json } = await rest(store, '/v1/weights', { method: 'POST', body });
  return json;
};
const mutationOf = (grams: string, variable = '') =>
  `mutation ${variable} { createWeight(input: { grams: ${grams} }) { grams } }`;
const answerOf = ({ data, errors }: any) =>
  data?.createWeight ?? errors[0].extensions;
const byLiteral: Add = async (grams) =>
  answerOf(await graphqlText(store, { query: mutationOf(grams) }));
const byVariable: Add = async (grams) => {
  const query = mutationOf('$grams', '($grams: Float!)');
  const variables = `{ "grams": ${grams} }`;
  const body = `{ "query": "${query}", "variables": ${variables} }`;
  return answerOf(await graphqlText(store, body));
};
const ways: Array<[string, Add]> = [
  ['REST', byRest],
  ['a literal', byLiteral],
  ['a variable', byVariable],
];

describe.each(ways)('through %s', (_name, add) => {
  test.each([
    '0.5',
    '-0',
    '1e2',
    '1e20',
    '-1e20',
    '1e308',
    '1.7976931348623157e308',
    '9007199254740992',
    '9007199254740993',
    '100000000000000000000000',
    '5e-324',
    '0.1234567890123456789',
    '-123456.78901234567890123',
  ])('%s is a number, also when it is repeated', async (grams) => {
    // A compiled operation reads its variables by itself.
    for (let time = 0; time < 3; time += 1)
      expect(Number((await add(grams)).grams)).toBe(Number(grams) + 0);
  });

  test.each(['1e309', '1e-400', '"5"', 'true', 'null', '[1]'])(
    '%s is none',
    async (grams) => {
      expect(['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED']).toContain(
        (await add(grams)).code,
      );
    },
  );
});

test.each(['1e400', '9007199254740993.5', '"1"'])(
  'the words about %s say what a number is',
  async (grams) => {
    const body = `{ "grams": ${grams} }`;
    const { json } = await rest(store, '/v1/weights', { method: 'POST', body });
    expect(json.message).toMatch(/^grams must be a number of double precision/);
  },
);
