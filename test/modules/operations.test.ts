// runs: embedded
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import { textSchema } from '#engine/validation/schemas.js';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { diariesModule } from './diaries/diaries.module.ts';
import { diary } from './diaries/diary.ts';

/** What an operation of a module takes, and what it costs. */

const some = (maxItems: number) =>
  operation({
    name: `diaries${maxItems}`,
    description: 'Lists some',
    path: `/diaries-${maxItems}`,
    input: Type.Object({}),
    output: Type.Array(diary.schemas.item, {
      $id: `Diaries${maxItems}`,
      maxItems,
    }),
  });
const operations = [some(30), some(1000)];
const description = 'What is asked.';
const echoSchema = Type.Object(
  { answer: Type.String({ description: 'What was asked.' }) },
  { $id: 'Echo', description: 'What an operation has got.' },
);
const text = textSchema({ description });
/** Inputs that take nearly anything. */
const inputs = {
  None: Type.Object({}),
  Text: Type.Object({ text }),
  Option: Type.Object({ text: Type.Optional(text) }),
  Texts: Type.Object({
    texts: Type.Array(text, { maxItems: 3, description }),
  }),
};
const echoes = Object.entries(inputs).map(([name, input]) =>
  operation({
    name: `echo${name}`,
    description: 'Says what it has got',
    path: `/echo-${name.toLowerCase()}`,
    input,
    output: echoSchema,
  }),
);
const shelves: Module = {
  tag: { name: 'Shelves', description: 'Shelves.' },
  open: ({ database }) => ({
    resources: [
      ...operations.map((one) => one.serve(database, async () => [])),
      ...echoes.map((one) =>
        one.serve(database, async (input) => ({
          answer: JSON.stringify(input),
        })),
      ),
    ],
  }),
};
const store = storeForAll({ GRAPHQL_MAX_COST: '12' }, undefined, {
  more: [diariesModule, shelves],
});

test.each([
  ['/echo-none', '{ echoNone { answer } }', '{}'],
  ['/echo-text?text=a', '{ echoText(text: "a") { answer } }', '{"text":"a"}'],
  ['/echo-option', '{ echoOption { answer } }', '{}'],
  [
    '/echo-texts?texts=a&texts=b',
    '{ echoTexts(texts: ["a", "b"]) { answer } }',
    '{"texts":["a","b"]}',
  ],
])('%s is answered, as %s is', async (path, query, answer) => {
  const { json } = await rest(store, `/v1${path}`);
  expect(json).toEqual({ answer });
  const { data } = await graphqlText(store, { query });
  expect(Object.values(data)).toEqual([{ answer }]);
});

test.each([
  ['{ diaries30 { id } }', 10 + 30],
  ['{ diaries30 { id remarks { id } } }', 10 + 30 * (1 + 6)],
  ['{ diaries1000 { id } }', 10 + 1000],
  ['{ diaries1000 { id remarks { id } } }', 10 + 1000 * (1 + 6)],
  [
    '{ diaries1000 { id remarks(limit: 2) { id diary { id } } } }',
    10 + 1000 * (1 + 1 + 2 * (1 + 1)),
  ],
])(
  '%s may cost %d: each of its items, and what is selected of it',
  async (query, cost) => {
    const { errors } = await graphqlText(store, { query });
    expect(errors?.[0]?.message).toMatch(`cost too much: ${cost}, at most 12.`);
  },
);
