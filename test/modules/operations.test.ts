// runs: embedded
import { type TArray, type TObject, type TSchema, Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import { nullable, textSchema } from '#engine/validation/schemas.js';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { startStore, storeForAll } from '../support/store.ts';
import { diariesModule } from './diaries/diaries.module.ts';
import { DiaryEntity, diary } from './diaries/diary.ts';

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
const refused = operation({
  name: 'refused',
  description: 'Calls what refuses',
  path: '/refused',
  input: inputs.None,
  output: echoSchema,
});
const note = operation({
  name: 'addNote',
  description: 'Stores nothing',
  path: '/notes',
  input: Type.Object(
    { text },
    { $id: 'NewNote', description: 'What is asked.' },
  ),
  output: Type.Object(
    {
      text: Type.Optional(text),
      any: nullable(Type.Unknown({ description })),
    },
    { $id: 'Note', description: 'Nothing.' },
  ),
  creates: [DiaryEntity],
});
const shelves: Module = {
  tag: { name: 'Shelves', description: 'Shelves.' },
  open: ({ database }) => ({
    resources: [
      ...echoes.map((one) =>
        one.serve(database, async (input) => ({
          answer: JSON.stringify(input),
        })),
      ),
      note.serve(database, async () => ({ any: null })),
      refused.serve(database, async () => {
        throw Object.assign(new Error('upstream'), { statusCode: 403 });
      }),
    ],
  }),
};
const withOperations: Module = {
  ...diariesModule,
  open(context) {
    const { resources = [], ...opened } = diariesModule.open(context);
    const added = operations.map((one) =>
      one.serve(context.database, async () => []),
    );
    return { ...opened, resources: [...resources, ...added] };
  },
};
const store = storeForAll({ GRAPHQL_MAX_COST: '12' }, undefined, {
  more: [withOperations, shelves],
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

test('a member that an operation may leave out is null in GraphQL', async () => {
  const input = { text: 'a' };
  const { json } = await rest(store, '/v1/notes', {
    method: 'POST',
    json: input,
  });
  expect(json).toEqual({ any: null });
  const query = 'mutation { addNote(input: { text: "a" }) { text any } }';
  expect(await graphqlText(store, { query })).toMatchObject({
    data: { addNote: { text: null, any: null } },
  });
});

test('a status of what a module calls is none of the request', async () => {
  const code = 'INTERNAL_SERVER_ERROR';
  const { json } = await rest(store, '/v1/refused');
  expect(json).toMatchObject({ code, status: 500 });
  const query = '{ refused { answer } }';
  const { errors } = await graphqlText(store, { query });
  expect(errors?.[0]?.extensions).toEqual({ code, status: 500 });
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

/** The start of a service with one more operation. */
function startWith(
  declared: Omit<Parameters<typeof operation>[0], 'description' | 'path'>,
) {
  const one = operation({
    ...declared,
    description: 'Is refused',
    path: `/${declared.name}`,
  });
  const more: Module = {
    tag: { name: 'More', description: 'More.' },
    open: ({ database }) => ({
      resources: [one.serve(database, async () => null as never)],
    }),
  };
  return startStore({}, { more: [diariesModule, more] });
}

const nested = Type.Object({ text }, { description });
test.each<[string, TSchema]>([
  ['an object', nested],
  ['objects', Type.Array(nested, { maxItems: 3, description })],
  ['JSON', Type.Unknown({ description })],
  ['an object that may be absent', Type.Optional(nested)],
])('the start refuses %s in a query string', async (what, given) => {
  const name = `reads${what.replace(/\W/g, '')}`;
  const input = Type.Object({ given });
  const started = startWith({ name, input, output: echoSchema });
  await expect(started).rejects.toThrow(
    `/v1/${name} cannot have given in a query string.`,
  );
});

const ofDiary = { description, maxItems: 3 };
const items = diary.schemas.item;
test.each<[string, TObject | TArray<TObject>, Array<typeof DiaryEntity>?]>([
  ['an item', items],
  ['items', Type.Array(items, ofDiary)],
  [
    'items in a member',
    Type.Object(
      { diaries: Type.Array(items, ofDiary) },
      { $id: 'Shelf', description },
    ),
  ],
  ['an item that it creates', items, [DiaryEntity]],
])(
  'the start refuses an operation that returns %s of another module',
  async (what, output, creates) => {
    const name = `gives${what.replace(/\W/g, '')}`;
    const input = Type.Object(
      { text },
      { $id: `${name}Input`, description: 'What is asked.' },
    );
    const started = startWith({
      name,
      input,
      output,
      ...(creates && { creates }),
    });
    await expect(started).rejects.toThrow(
      `${name} returns Diary of another module: give it an $id of its own.`,
    );
  },
);

describe('the JSON of an operation', () => {
  const json = Type.Unknown({ description });
  const within = (member: TSchema, $id: string) =>
    Type.Object({ any: member }, { $id, description });
  const startOf = (member: TSchema, name: string) =>
    startWith({
      name,
      input: Type.Object({ text }, { $id: `New${name}`, description }),
      output: within(member, name),
      creates: [DiaryEntity],
    });

  test.each<[string, TSchema]>([
    ['a member', json],
    ['a member of an object', within(json, 'Inner')],
    [
      'a member of objects',
      Type.Array(within(json, 'Inners'), { description, maxItems: 3 }),
    ],
  ])(
    'in %s may be null, because GraphQL would answer an error',
    (what, member) => {
      const name = `adds${what.replace(/\W/g, '')}`;
      expect(() => startOf(member, name)).toThrow(
        `any of ${name} may be null: write nullable(...).`,
      );
    },
  );

  test.each<[string, TSchema]>([
    ['that may be left out', Type.Optional(json)],
    [
      'of several types',
      Type.Union([Type.String(), Type.Integer()], { description }),
    ],
  ])('%s needs no mark', async (what, member) => {
    const started = await startOf(member, `adds${what.replace(/\W/g, '')}`);
    await started.close();
  });
});
