import { expect, test } from '@jest/globals';
import { buildSchema, graphql, printSchema } from 'graphql';
import { type SubgraphOptions, subgraph } from '../src/subgraph.ts';

const schema = buildSchema('type Query { toys: [Toy!]! } type Toy { id: ID! name: String } type PageInfo { end: ID }');

function subgraphWith(options: Partial<SubgraphOptions<object>> = {}) {
  return subgraph<object>(schema, {
    references: { Toy: async (id) => (id === '7' ? null : { id, name: `toy ${id}` }) },
    shareable: ['PageInfo'],
    introspection: true,
    maxConcurrent: 2,
    run: (_, work) => work(),
    refuse: (message) => new Error(message),
    ...options,
  });
}

const find = (source: string, served = subgraphWith(), representations: unknown = []) =>
  graphql({ schema: served, source, contextValue: {}, variableValues: { representations } });
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
  expect(printSchema(subgraphWith({ introspection: false }))).not.toContain('_service');
});

test('ids are exact, an error is about one representation, and an unknown item is null', async () => {
  const ids = ['1', 9007199254740993n, '7', undefined];
  const representations = [...ids.map((id) => ({ __typename: 'Toy', id })), { __typename: 'Car', id: '1' }];
  const { data, errors } = await find(query, undefined, representations);
  expect(data?._entities).toEqual([{ name: 'toy 1' }, { name: 'toy 9007199254740993' }, null, null, null]);
  expect(errors?.map(({ message, path }) => [message, path])).toEqual([
    ['A representation needs `id`: a string, or an integer.', ['_entities', 3]],
    ['No entity is named Car.', ['_entities', 4]],
  ]);
  const literal =
    '{ _entities(representations: [{ __typename: "Toy", id: 9007199254740993 }]) { ... on Toy { name } } }';
  expect((await find(literal)).data?._entities).toEqual([{ name: 'toy 9007199254740993' }]);
});

test('a request has a bounded number of concurrent look-ups, also in several fields', async () => {
  let current = 0;
  let most = 0;
  const Toy = async (id: string) => {
    current += 1;
    most = Math.max(most, current);
    await new Promise((resolve) => setImmediate(resolve));
    current -= 1;
    return { id };
  };
  const ids = [1, 2, 3, 4, 5].map((id) => `{ __typename: "Toy", id: ${id} }`);
  const field = `_entities(representations: [${ids}]) { ... on Toy { id } }`;
  const { data } = await find(`{ a: ${field} b: ${field} }`, subgraphWith({ references: { Toy } }));
  expect([data?.a, data?.b].map((found) => (found as unknown[]).length)).toEqual([5, 5]);
  expect(most).toBe(2);
});

test('a representation without a type is refused, and so is a reference without a GraphQL type', async () => {
  const { data, errors } = await find(query, undefined, [{ id: '1' }]);
  expect(data).toBeUndefined();
  expect(errors?.[0]?.message).toContain('A representation must be an object with `__typename`');
  expect(() => subgraphWith({ references: { Car: async () => null } })).toThrow(
    'A module finds Car by id (references), and there is no GraphQL type of this name with an id.',
  );
});
