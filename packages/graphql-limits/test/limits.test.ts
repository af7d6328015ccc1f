import {
  assertCosts,
  countedAbove,
  estimateOf,
} from '@animal-store/graphql-limits/cost';
import {
  operationLimits,
  unconditionalSubscriptions,
} from '@animal-store/graphql-limits/limits';
import { expect, test } from '@jest/globals';
import {
  buildSchema,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  validate,
} from 'graphql';

/** Limits and costs with graphql-js alone. */

const schema = buildSchema(`
  interface Node { id: ID }
  type Toy implements Node { id: ID, name: String, owner: Pet, parts: [Toy] }
  type Pet implements Node { id: ID, toys(first: Int): [Toy], tags: [String] }
  type Pets { total: Int, count: Int, edges: [Edge], nodes: [Pet] }
  type Edge { cursor: ID, node: Pet }
  type Query { pets(limit: Int): [Pet], pet: Pet, node: Node, page(first: Int): Pets }
  type Subscription { added: Pet }
`);
function resolve(schema: GraphQLSchema, type: string, name: string): void {
  const field = (schema.getType(type) as GraphQLObjectType).getFields()[name];
  if (field) field.resolve = () => null;
}
resolve(schema, 'Toy', 'owner');
resolve(schema, 'Pet', 'toys');
resolve(schema, 'Pets', 'count');
for (const name of ['edges', 'nodes']) {
  const field = (schema.getType('Pets') as GraphQLObjectType).getFields()[name];
  Object.assign(field?.extensions ?? {}, { complexity: countedAbove });
}
assertCosts(schema);

const limits = {
  maxFields: 20,
  maxDepth: 4,
  maxAliases: 2,
};
const codes = (text: string) => {
  const rules = [
    unconditionalSubscriptions,
    ...specifiedRules,
    operationLimits(limits),
  ];
  return validate(schema, parse(text), rules).map(
    ({ extensions, message }) => extensions.code ?? message,
  );
};

test.each([
  ['{ pet { toys { owner { id } } } }', []],
  ['{ pet { toys { owner { toys { id } } } } }', ['QUERY_TOO_DEEP']],
  ['{ a: pet { b: id c: id } }', ['TOO_MANY_ALIASES']],
  // Each 64 characters of an alias count as one.
  [`{ pet { ${'a'.repeat(128)}: id } }`, []],
  [`{ pet { ${'a'.repeat(129)}: id } }`, ['TOO_MANY_ALIASES']],
  [
    `{ pets { ...A } pet { ...A } } fragment A on Pet { ${'a'.repeat(65)}: id }`,
    ['TOO_MANY_ALIASES'],
  ],
  [
    `{ pet { ...A ...A } } fragment A on Pet { ...B ...B } fragment B on Pet { ...C ...C } fragment C on Pet { id id id }`,
    ['TOO_MANY_TOKENS'],
  ],
  [
    'subscription ($no: Boolean!) { added @skip(if: $no) { id } }',
    [
      'The field of a subscription is neither skipped nor included on a condition.',
      'Variable "$no" is never used.',
    ],
  ],
])('%s', (text, expected) => expect(codes(text)).toEqual(expected));

const mostItems = (limit: unknown) =>
  Math.min(limit == null ? 20 : Number(limit), 100);
const estimate = (text: string, variables = {}, maxCost = 1_000_000) => {
  const document = parse(text);
  const node = getOperationAST(document) as OperationDefinitionNode;
  return estimateOf(schema, document, node, { maxCost, mostItems })(variables);
};
const ids = (count: number, name = 'a') =>
  Array.from({ length: count }, (_, at) => `${name}${at}: id`).join(' ');

test.each([
  ['{ pet { id } }', {}, 2],
  ['{ pets { id } }', {}, 21],
  ['{ pets(limit: 5) { toys(first: 3) { name } } }', {}, 1 + 5 * (1 + 4)],
  ['query ($n: Int = 7) { pets(limit: $n) { id } }', {}, 8],
  ['query ($n: Int = 7) { pets(limit: $n) { id } }', { n: 9 }, 10],
  [
    '{ node { ... on Pet { toys(first: 4) { id } } ... on Toy { owner { id } } } }',
    {},
    2 + 5 + 1,
  ],
  [
    '{ page(first: 5) { count nodes { toys(first: 1) { id } } } }',
    {},
    1 + 1 + 5 * (1 + 2),
  ],
  [
    '{ page(first: 100) { count more: count edges { cursor } } }',
    {},
    1 + 2 + 100,
  ],
  // Without a resolver a list costs nothing, but its items have the longest
  // page.
  [
    '{ pet { toys(first: 1) { parts { owner { id } } } } }',
    {},
    2 + 1 + (1 + 100),
  ],
])('%s with %p costs %d', (text, variables, cost) => {
  expect(estimate(text, variables)).toMatchObject({ cost, fixed: 0 });
});

test.each([
  ['ten of a list', `{ pets(limit: 5) { ${ids(10)} } }`, 6, 0],
  ['an eleventh', `{ pets(limit: 5) { ${ids(11)} } }`, 6, 5],
  ['a list of scalars', `{ pets(limit: 5) { ${ids(10)} tags } }`, 6, 5],
  [
    'an eleventh in a fragment',
    `{ pets(limit: 5) { ${ids(10)} ...F } } fragment F on Pet { b: id }`,
    6,
    5,
  ],
  [
    'the same ones again, and __typename',
    `{ pets(limit: 5) { ${ids(10)} ...F __typename } } fragment F on Pet { ${ids(10)} }`,
    6,
    0,
  ],
  ['one item', `{ pet { ${ids(12)} } }`, 2, 2],
  ['an event', `subscription { added { ${ids(13)} } }`, 2, 3],
  [
    'two lists of a page together',
    `{ page(first: 5) { total edges { cursor node { ${ids(5)} } } nodes { ${ids(5)} } } }`,
    6,
    5,
  ],
  [
    'beside the list of a page',
    `{ page(first: 5) { ${ids(11).replaceAll('id', 'total')} nodes { id } } }`,
    6,
    0,
  ],
  [
    'those of a field that is merged, together',
    `{ pets(limit: 1) { ${ids(6)} } pets(limit: 1) { ${ids(6, 'b')} } }`,
    4,
    2,
  ],
  [
    'each list by itself',
    `{ a: pets(limit: 5) { ${ids(11)} } b: pets(limit: 2) { ${ids(12)} } }`,
    9,
    9,
  ],
  [
    'a list below a list',
    `{ pets(limit: 5) { id toys(first: 3) { ${ids(11)} } } }`,
    1 + 5 * (1 + 4),
    5 * 3,
  ],
  [
    'an item read for each item',
    `{ pets(limit: 5) { toys(first: 1) { name owner { ${ids(11)} } } } }`,
    1 + 5 * (1 + 1 + 2),
    5,
  ],
  [
    'a list of unknown length',
    `{ pet { toys(first: 1) { parts { ${ids(11)} } } } }`,
    2 + 2,
    100,
  ],
  [
    'all types of an item',
    `{ node { ... on Pet { ${ids(6, 'p')} } ... on Toy { ${ids(6, 't')} n: name } } }`,
    2,
    3,
  ],
])(
  'ten leaf fields of an item are free, each further one costs a unit: %s',
  (_what, text, cost, fixed) => {
    expect(estimate(text)).toMatchObject({ cost: cost + fixed, fixed });
  },
);

test('an operation that may cost more than the limit is refused', () => {
  const message =
    'The operation may cost too much: 21, at most 20. Ask for fewer fields or smaller pages.';
  expect(() => estimate('{ pets { id } }', {}, 20)).toThrow(
    expect.objectContaining({
      message,
      extensions: { code: 'QUERY_TOO_COSTLY' },
    }),
  );
});

test('a list without pages must declare its cost', () => {
  const names = buildSchema('type Query { names: [String] }');
  resolve(names, 'Query', 'names');
  expect(() => assertCosts(names)).toThrow(
    'Query.names must say what it costs (complexity).',
  );
});
