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
import { assertCosts, estimateOf } from '../src/cost.ts';
import { operationLimits, unconditionalSubscriptions } from '../src/limits.ts';

/** Limits and costs with graphql-js alone; test/graphql/limits.test.ts has them in the service. */

const schema = buildSchema(`
  interface Node { id: ID }
  type Toy implements Node { id: ID, name: String, owner: Pet, parts: [Toy] }
  type Pet implements Node { id: ID, toys(first: Int): [Toy] }
  type Query { pets(limit: Int): [Pet], pet: Pet, node: Node }
  type Subscription { added: Pet }
`);
function resolve(schema: GraphQLSchema, type: string, name: string): void {
  const field = (schema.getType(type) as GraphQLObjectType).getFields()[name];
  if (field) field.resolve = () => null;
}
resolve(schema, 'Toy', 'owner');
resolve(schema, 'Pet', 'toys');
assertCosts(schema);

const limits = { maxTokens: 20, maxDepth: 4, maxAliases: 2, maxRootFields: 3, maxDirectives: 2 };
const codes = (text: string) => {
  const rules = [unconditionalSubscriptions, ...specifiedRules, operationLimits(limits)];
  return validate(schema, parse(text), rules).map(({ extensions, message }) => extensions.code ?? message);
};

test.each([
  ['{ pet { toys { owner { id } } } }', []],
  ['{ pet { toys { owner { toys { id } } } } }', ['QUERY_TOO_DEEP']],
  ['{ a: pet { b: id c: id } }', ['TOO_MANY_ALIASES']],
  ['{ pet { id } pet { id } pet { id } ...More } fragment More on Query { pet { id } }', ['TOO_MANY_ROOT_FIELDS']],
  ['{ pet @skip(if: true) { id @skip(if: true) ... @skip(if: true) { id } } }', ['TOO_MANY_DIRECTIVES']],
  [
    `{ pet { ...A ...A } } fragment A on Pet { ...B ...B } fragment B on Pet { ...C ...C } fragment C on Pet { id id id }`,
    ['TOO_MANY_TOKENS'],
  ],
  [
    'subscription ($no: Boolean!) { added @skip(if: $no) { id } }',
    ['The field of a subscription is neither skipped nor included on a condition.', 'Variable "$no" is never used.'],
  ],
])('%s', (text, expected) => expect(codes(text)).toEqual(expected));

const mostItems = (limit: unknown) => Math.min(limit == null ? 20 : Number(limit), 100);
const costOf = (text: string, variables = {}, maxCost = 1_000_000) => {
  const document = parse(text);
  const node = getOperationAST(document) as OperationDefinitionNode;
  return estimateOf(schema, document, node, { maxCost, mostItems })(variables).cost;
};

test.each([
  ['{ pet { id } }', {}, 2],
  ['{ pets { id } }', {}, 21],
  ['{ pets(limit: 5) { toys(first: 3) { name } } }', {}, 1 + 5 * (1 + 4)],
  ['query ($n: Int = 7) { pets(limit: $n) { id } }', {}, 8],
  ['query ($n: Int = 7) { pets(limit: $n) { id } }', { n: 9 }, 10],
  ['{ node { ... on Pet { toys(first: 4) { id } } ... on Toy { owner { id } } } }', {}, 2 + 5 + 1],
  // Without a resolver a list costs nothing, but its items have the longest page.
  ['{ pet { toys(first: 1) { parts { owner { id } } } } }', {}, 2 + 1 + (1 + 100)],
])('%s with %p costs %d', (text, variables, cost) => expect(costOf(text, variables)).toBe(cost));

test('an operation that may cost more than the limit is refused', () => {
  const message = 'The operation may cost too much: 21, at most 20. Ask for fewer fields or smaller pages.';
  expect(() => costOf('{ pets { id } }', {}, 20)).toThrow(
    expect.objectContaining({ message, extensions: { code: 'QUERY_TOO_COSTLY' } }),
  );
});

test('a list without pages must declare its cost', () => {
  const names = buildSchema('type Query { names: [String] }');
  resolve(names, 'Query', 'names');
  expect(() => assertCosts(names)).toThrow('Query.names must say what it costs (complexity).');
});
