import { buildSchema, graphql, printSchema } from 'graphql';
import type { References } from '#engine/api/graphql/scopes.js';
import { subgraph } from '#engine/features/federation/subgraph.js';
import { expect, test } from '../../support/jest.ts';

const schema = buildSchema(
  'type Query { toys: [Toy!]! } type Toy { id: ID! name: String } type PageInfo { end: ID }',
);

const toys: References = {
  Toy: async (id) => (id === 7 ? null : { id, name: `toy ${id}` }),
};
const subgraphWith = (references = toys, introspection = true) =>
  subgraph(schema, schema, references, introspection);

const find = (
  source: string,
  served = subgraphWith(),
  representations: unknown = [],
) =>
  graphql({
    schema: served,
    source,
    contextValue: {},
    variableValues: { representations },
  });
const query =
  'query ($representations: [_Any!]!) { _entities(representations: $representations) { ... on Toy { name } } }';

test('the SDL has a key for each reference and shares the shareable types', async () => {
  const { data } = await find('{ _service { sdl } }');
  expect(JSON.parse(JSON.stringify(data))).toEqual({
    _service: {
      sdl: `extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])

type Query {
  toys: [Toy!]!
}

type Toy @key(fields: "id") {
  id: ID!
  name: String
}

type PageInfo @shareable {
  end: ID
}
`,
    },
  });
  expect(printSchema(subgraphWith(toys, false))).not.toContain('_service');
});

test('ids are exact, an error is about one representation, and an unknown item is null', async () => {
  const ids = ['1', 9007199254740993n, '7', undefined];
  const representations = [
    ...ids.map((id) => ({ __typename: 'Toy', id })),
    { __typename: 'Car', id: '1' },
  ];
  const { data, errors } = await find(query, undefined, representations);
  expect(data?._entities).toEqual([
    { name: 'toy 1' },
    { name: 'toy 9007199254740993' },
    null,
    null,
    null,
  ]);
  expect(errors?.map(({ message, path }) => [message, path])).toEqual([
    ['A representation needs `id`: a string, or an integer.', ['_entities', 3]],
    ['No entity is named Car.', ['_entities', 4]],
  ]);
  const literal =
    '{ _entities(representations: [{ __typename: "Toy", id: 9007199254740993 }]) { ... on Toy { name } } }';
  expect((await find(literal)).data?._entities).toEqual([
    { name: 'toy 9007199254740993' },
  ]);
});

test('a request looks up a page at a time, also in several fields, and each item of a field once', async () => {
  let current = 0;
  let most = 0;
  const looked: string[] = [];
  const Toy: References[string] = async (id) => {
    looked.push(`${id}`);
    current += 1;
    most = Math.max(most, current);
    await new Promise((resolve) => setImmediate(resolve));
    current -= 1;
    return { id };
  };
  const field = (ids: unknown[]) =>
    `_entities(representations: [${ids.map((id) => `{ __typename: "Toy", id: ${id} }`)}]) { ... on Toy { id } }`;
  const source = `{ a: ${field([1, 2, 3, 4, 5])} b: ${field([2, '"2"', 3, 2])} }`;
  const { data } = await find(source, subgraphWith({ Toy }));
  const found = (ids: string[]) => ids.map((id) => ({ id }));
  expect(data).toEqual({
    a: found(['1', '2', '3', '4', '5']),
    b: found(['2', '2', '3', '2']),
  });
  expect([most, looked]).toEqual([5, ['1', '2', '3', '4', '5', '2', '3']]);
});

test('the cost of a field is one, and one and that of its fields for each representation; too many are refused', () => {
  const field = subgraphWith().getQueryType()?.getFields()._entities;
  const complexity = field?.extensions.complexity as (
    estimate: object,
  ) => number;
  const costOf = (representations: unknown) =>
    complexity({ args: { representations }, childComplexity: 2 });
  expect([costOf([1, 2, 3, 4, 5]), costOf({})]).toEqual([16, 4]);
  expect(() => costOf(Array(101).fill(1))).toThrow(
    '_entities takes at most 100 representations at a time: 101.',
  );
});

test('a representation without a type is refused, and so is a reference without a GraphQL type', async () => {
  const { data, errors } = await find(query, undefined, [{ id: '1' }]);
  expect(data).toBeUndefined();
  expect(errors?.[0]?.message).toContain(
    'A representation must be an object with `__typename`',
  );
  expect(() => subgraphWith({ Car: async () => null })).toThrow(
    'References name Car, and there is no GraphQL type of this name with an id.',
  );
});
