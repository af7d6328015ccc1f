import { sql, stock } from '../../support/database-access.ts';
import { graphqlText, graphqlThrice } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { beforeAll, expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

/**
 * The store as a subgraph. `test/deep/features/federation/example.test.ts` runs it
 * behind Apollo Gateway and Hive Gateway.
 */

const store = storeForAll({ GRAPHQL_FEDERATION: 'true' });
beforeAll(() => stock(store.database, 5));

const query =
  'query ($of: [_Any!]!) { _entities(representations: $of) { __typename ... on Pet { id name } } }';
const pet = (id: unknown) => ({ __typename: 'Pet', id });

test('the SDL gives Pet a key, and shares PageInfo', async () => {
  const { data } = await graphqlText(store, { query: '{ _service { sdl } }' });
  expect(data._service.sdl).toContain('\ntype Pet @key(fields: "id") {\n');
  expect(data._service.sdl).toContain('\ntype PageInfo @shareable {\n');
});

test('entities have the order of their representations, with null for an unknown id', async () => {
  const of = [
    pet('2'),
    pet('99'),
    pet(1),
    pet('2'),
    pet('x'),
    pet('9223372036854775808'),
  ];
  const { status, data, errors } = await graphqlThrice(store, {
    query,
    variables: { of },
  });
  const two = { __typename: 'Pet', id: '2', name: expect.any(String) };
  expect([status, errors]).toEqual([200, undefined]);
  expect(data._entities).toEqual([
    two,
    null,
    { ...two, id: '1' },
    two,
    null,
    null,
  ]);
});

test('ids are exact: as text, as a number in the variables and as a literal', async () => {
  const id = '9007199254740993';
  await sql(
    store.database,
    `insert into pet (id, name, category_id, status) values (${id}, 'Exact', 1, 'sold')`,
  );
  const found = { data: { _entities: [{ id, name: 'Exact' }] } };
  const fields = '{ ... on Pet { id name } }';
  const inside = (id: string) =>
    `_entities(representations: [{ __typename: "Pet", id: ${id} }]) ${fields}`;
  for (const given of [`"${id}"`, id]) {
    for (const [query, variables] of [
      [`{ ${inside(given)} }`, '{}'],
      [
        `query ($of: [_Any!]!) { _entities(representations: $of) ${fields} }`,
        `{"of":[{"__typename":"Pet","id":${given}}]}`,
      ],
      [`query ($id: ID) { ${inside('$id')} }`, `{"id":${given}}`],
    ]) {
      const body = `{"query":${JSON.stringify(query)},"variables":${variables}}`;
      expect(await graphqlText(store, body)).toMatchObject(found);
    }
  }
});

test.each([
  [{ __typename: 'Cat', id: '1' }, 'No entity is named Cat.'],
  [
    { __typename: 'PetConnection', id: '1' },
    'No entity is named PetConnection.',
  ],
  [
    { __typename: 'A'.repeat(5000), id: '1' },
    `No entity is named ${'A'.repeat(100)}.`,
  ],
  // Members of every object.
  ...['constructor', '__proto__', 'toString'].map(
    (name) =>
      [{ __typename: name, id: '1' }, `No entity is named ${name}.`] as const,
  ),
  [
    { __typename: 'Pet' },
    'A representation needs `id`: a string, or an integer.',
  ],
])(
  'a representation with an error is null, and the others are found: %j',
  async (faulty, message) => {
    const { data, errors } = await graphqlThrice(store, {
      query,
      variables: { of: [pet('1'), faulty] },
    });
    expect(data._entities).toEqual([
      { __typename: 'Pet', id: '1', name: expect.any(String) },
      null,
    ]);
    const place = {
      locations: [{ line: 1, column: 25 }],
      path: ['_entities', 1],
    };
    expect(errors).toEqual([
      {
        message,
        ...place,
        extensions: { code: 'BAD_USER_INPUT', status: 400 },
      },
    ]);
  },
);

test.each([[[1]], [[{ id: '1' }]], [[null]], [null]])(
  'invalid representations are refused: %j',
  async (of) => {
    const { data, errors } = await graphqlText(store, {
      query,
      variables: { of },
    });
    expect([data, errors?.[0]?.extensions]).toEqual([
      undefined,
      { code: 'BAD_USER_INPUT', status: 400 },
    ]);
  },
);

test('each representation costs one', async () => {
  const of = Array.from({ length: 100 }, (_, at) => pet(`${at + 1}`));
  await onNode(
    store,
    { GRAPHQL_FEDERATION: 'true', GRAPHQL_MAX_COST: '100' },
    async (node) => {
      const { errors } = await graphqlText(node, { query, variables: { of } });
      expect(errors).toMatchObject([
        { extensions: { code: 'QUERY_TOO_COSTLY' } },
      ]);
      expect(
        (await graphqlText(node, { query, variables: { of: of.slice(1) } }))
          .errors,
      ).toBeUndefined();
    },
  );
});

test('a field takes a page of representations; more are refused before any is looked up', async () => {
  const of = Array.from({ length: 101 }, () => pet(1));
  const message = '_entities takes at most 100 representations at a time: 101.';
  const refusal = {
    errors: [{ message, extensions: { code: 'BAD_USER_INPUT', status: 400 } }],
  };
  const literal = `{ pets { id } _entities(representations: [${'{ __typename: "Pet", id: 1 } '.repeat(101)}]) { ... on Pet { id } } }`;
  for (const body of [{ query, variables: { of } }, { query: literal }]) {
    const { status, text } = await graphqlThrice(store, body);
    expect([status, JSON.parse(text)]).toEqual([200, refusal]);
  }
  expect(
    (await graphqlThrice(store, { query, variables: { of: of.slice(1) } })).data
      ._entities,
  ).toHaveLength(100);
});

test('an item that several representations name is looked up once', async () => {
  await onNode(store, { GRAPHQL_FEDERATION: 'true' }, async (node) => {
    const of = [
      ...Array(40).fill(pet('1')),
      ...Array(40).fill(pet(1)),
      pet('2'),
      pet(undefined),
      pet(null),
    ];
    const { data, errors } = await graphqlText(node, {
      query,
      variables: { of },
    });
    const [one, two] = ['1', '2'].map((id) => ({
      __typename: 'Pet',
      id,
      name: expect.any(String),
    }));
    expect(data._entities).toEqual([...Array(80).fill(one), two, null, null]);
    expect(errors?.map(({ path }) => path)).toEqual(
      [81, 82].map((at) => ['_entities', at]),
    );
  });
});

test('the SDL needs a key, and GRAPHQL_INTROSPECTION=false hides it', async () => {
  expect(
    (await send(store.origin, { path: '/graphql?query={_service{sdl}}' }))
      .status,
  ).toBe(401);
  await onNode(
    store,
    { GRAPHQL_FEDERATION: 'true', GRAPHQL_INTROSPECTION: 'false' },
    async (node) => {
      const { errors } = await graphqlText(node, {
        query: '{ _service { sdl } }',
      });
      expect(errors).toMatchObject([
        { extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } },
      ]);
      expect(
        (await graphqlText(node, { query, variables: { of: [pet(1)] } })).data
          ._entities,
      ).toMatchObject([pet('1')]);
    },
  );
});
