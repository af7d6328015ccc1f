import { assertCosts, estimateOf } from '@animal-store/graphql-limits/cost';
import { expect, test } from '@jest/globals';
import {
  buildSchema,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { resolve, schema } from './schema.ts';

/** What an operation may cost: one unit for a field, and for each item. */

const mostFor = (limit: unknown) =>
  Math.min(limit == null ? 20 : Number(limit), 100);
const estimate = (text: string, variables = {}, maxCost = 1_000_000) => {
  const document = parse(text);
  const node = getOperationAST(document) as OperationDefinitionNode;
  return estimateOf(schema, document, node, { maxCost, mostFor })(variables);
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
  // Execution merges the selections of a field.
  [
    '{ pet { toys(first: 3) { id } ...F } } fragment F on Pet { toys(first: 3) { name } }',
    {},
    2 + 4,
  ],
  [
    '{ node { ... on Pet { all: toys(first: 1) { id } } ... on Toy { all: owner { id } } } }',
    {},
    2 + 2 + 1,
  ],
  // Without a resolver a list costs nothing, but its items have the longest
  // page.
  [
    '{ pet { toys(first: 1) { parts { owner { id } } } } }',
    {},
    2 + 1 + (1 + 100),
  ],
])('%s with %p costs %d', (text, variables, cost) => {
  expect(estimate(text, variables)).toMatchObject({ cost, surcharge: 0 });
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
    2,
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
  (_what, text, cost, surcharge) => {
    expect(estimate(text)).toMatchObject({ cost: cost + surcharge, surcharge });
  },
);

test('an operation that may cost more than the limit is refused', () => {
  const message =
    'The operation may cost too much: 21, at most 20. Most of it is pets. Ask for fewer fields or smaller pages.';
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
