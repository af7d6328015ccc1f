import { readFileSync } from 'node:fs';
import { buildSchema, getIntrospectionQuery } from 'graphql';
import { Documents, type Operation } from '../../../src/api/graphql/documents.ts';
import { isSuitable } from '../../../src/api/graphql/operations.ts';
import { graphqlText } from '../../support/graphql.ts';
import { heapUsed } from '../../support/heap.ts';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { type Store, startStore } from '../../support/store.ts';

/** What is compiled and what is kept. That the answers are the same is shown in `compiled.test.ts`. */

describe('what is kept of requests', () => {
  let store: Store;
  beforeAll(async () => {
    store = await startStore({ GRAPHQL_JIT: 'true' });
  });
  afterAll(() => store.close());

  const mebibyte = 1024 * 1024;

  test.each([
    ['a document with one operation', '{ __typename }'],
    ['a document with several', 'query A { __typename } query B { __typename }'],
  ])('is nothing of an operationName of 1 MB that names none, in %s', async (_what, query) => {
    const ask = async (operationName: string) => {
      const { errors, text } = await graphqlText(store, { query, operationName });
      expect(errors?.map(({ extensions }) => extensions)).toEqual([{ code: 'BAD_USER_INPUT', status: 400 }]);
      expect(errors?.[0]?.message).toMatch(/^Unknown operation named "/);
      expect(text.length).toBeLessThan(2000);
    };
    for (let at = 0; at < 5; at += 1) await ask(`${at}`.padEnd(1_000_000, 'x'));
    const before = heapUsed();
    for (let at = 5; at < 105; at += 1) await ask(`${at}`.padEnd(1_000_000, 'x'));
    // 100 of them were sent.
    expect((heapUsed() - before) / mebibyte).toBeLessThan(40);
  });
});

describe('what is compiled', () => {
  let documents: Documents;
  beforeAll(async () => {
    const schema = buildSchema(readFileSync('schema/schema.graphql', 'utf8'));
    const most = 10_000;
    const limits = {
      maxTokens: most,
      maxDepth: most,
      maxAliases: most,
      maxRootFields: most,
      maxDirectives: most,
      maxCost: most,
    };
    const key = { key: undefined, graphRef: undefined };
    const rest = { introspection: true, apq: false, plugins: [], apollo: key, logger: console };
    documents = await Documents.open({ schema, limits, ...rest });
  });
  afterAll(() => documents.close());
  const suitable = async (query: string) =>
    isSuitable((await documents.find({ query, operationName: undefined }, {} as never)) as Operation);

  test.each(['{ __typename }', '{ pets { id } }', '{ petsConnection { edges { node { __typename } } } }'])(
    '%s is',
    async (query) => expect(await suitable(query)).toBe(true),
  );

  test.each([
    ['the standard query', getIntrospectionQuery()],
    ['__schema', '{ __schema { queryType { name } } }'],
    ['__type', '{ __type(name: "Pet") { name } }'],
    ['by an alias, beside other fields', '{ __typename pets { id } a: __schema { queryType { name } } }'],
    ['in fragments', '{ ...F } fragment F on Query { ... { __type(name: "Pet") { fields { name } } } }'],
  ])('introspection never is: %s', async (_how, query) => expect(await suitable(query)).toBe(false));

  test.each([
    ['conditions', 'query ($if: Boolean!) { __typename a: __typename @include(if: $if) }'],
    ['a variable in an input', 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: 1 }) { id } }'],
    [
      'several mutations',
      'mutation { a: createPet(input: { name: "a", categoryId: 1 }) { id } b: createPet(input: { name: "b", categoryId: 1 }) { id } }',
    ],
  ])('a document with %s, which graphql-jit takes wrongly, never is', async (_what, query) => {
    expect(await suitable(query)).toBe(false);
  });
});
