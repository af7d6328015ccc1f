import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type DocumentNode,
  getIntrospectionQuery,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { Executor, isSuitable } from '../../../src/api/graphql/executor.ts';
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

test('compiled operations are bounded, however many of them a document holds', async () => {
  const executor = new Executor(buildSchema(readFileSync('schema/schema.graphql', 'utf8')), {
    jit: true,
    suggestions: true,
  });
  const members = Array.from({ length: 50 }, (_, at) => `m${at}: name`).join(' ');
  const operations = Array.from({ length: 88 }, (_, at) => `query q${at} { pets { ...F } }`).join(' ');
  const kept: DocumentNode[] = [];
  const compileAll = async (count: number) => {
    for (let at = 0; at < count; at += 1) {
      const document = parse(`fragment F on Pet { ${members} } ${operations}`);
      // As the cache of documents does.
      kept.push(document);
      for (const { name } of document.definitions.slice(1) as OperationDefinitionNode[]) {
        const operation = getOperationAST(document, name?.value) ?? undefined;
        for (let time = 0; time < 2; time += 1)
          await executor.execute({ document, operation, context: {}, variables: {} });
      }
    }
  };
  await compileAll(12);
  const before = heapUsed();
  await compileAll(24);
  // The documents take some 7 MB; what is compiled of them took 20 more when all of it was kept.
  expect((heapUsed() - before) / 1024 / 1024).toBeLessThan(14);
});

describe('what is compiled', () => {
  function suitable(query: string): boolean {
    const document = parse(query);
    return isSuitable(document, getOperationAST(document) as OperationDefinitionNode);
  }

  test.each(['{ __typename }', '{ pets { id } }', '{ petsConnection { edges { node { __typename } } } }'])(
    '%s is',
    (query) => expect(suitable(query)).toBe(true),
  );

  test.each([
    ['the standard query', getIntrospectionQuery()],
    ['__schema', '{ __schema { queryType { name } } }'],
    ['__type', '{ __type(name: "Pet") { name } }'],
    ['by an alias, beside other fields', '{ __typename pets { id } a: __schema { queryType { name } } }'],
    ['in fragments', '{ ...F } fragment F on Query { ... { __type(name: "Pet") { fields { name } } } }'],
  ])('introspection never is: %s', (_how, query) => expect(suitable(query)).toBe(false));

  test.each([
    ['conditions', 'query ($if: Boolean!) { __typename a: __typename @include(if: $if) }'],
    ['a variable in an input', 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: 1 }) { id } }'],
    ['several mutations', 'mutation { a: createPet { id } b: createPet { id } }'],
  ])('a document with %s, which graphql-jit takes wrongly, never is', (_what, query) => {
    expect(suitable(query)).toBe(false);
  });
});
