import { getIntrospectionQuery, getOperationAST, type OperationDefinitionNode, parse } from 'graphql';
import type { Operation } from '../../../src/api/graphql/operation.ts';
import { isSuitable } from '../../../src/api/graphql/operations.ts';
import { graphqlText } from '../../support/graphql.ts';
import { heapUsed } from '../../support/heap.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/** What is compiled and what is kept. That the answers are the same is shown in `compiled.test.ts`. */

const store = storeForAll({ GRAPHQL_JIT: 'true' });

test.each([
  ['a document with one operation', '{ __typename }'],
  ['a document with several', 'query A { __typename } query B { __typename }'],
])('nothing is kept of an operationName of 1 MB that names none, in %s', async (_what, query) => {
  const ask = async (operationName: string) => {
    const { errors, text } = await graphqlText(store, { query, operationName });
    expect(errors?.map(({ extensions }) => extensions)).toEqual([{ code: 'BAD_USER_INPUT', status: 400 }]);
    expect(errors?.[0]?.message).toMatch(/^Unknown operation named "/);
    expect(text.length).toBeLessThan(2000);
  };
  for (let at = 0; at < 5; at += 1) await ask(`${at}`.padEnd(1_000_000, 'x'));
  const before = heapUsed();
  for (let at = 5; at < 105; at += 1) await ask(`${at}`.padEnd(1_000_000, 'x'));
  // 100 MB were sent.
  expect((heapUsed() - before) / 1024 / 1024).toBeLessThan(40);
});

test.each([
  [true, '{ petsConnection { edges { node { __typename } } } }'],
  [false, getIntrospectionQuery()],
  [false, '{ ...F } fragment F on Query { ... { __type(name: "Pet") { fields { name } } } }'],
  [false, 'query A { __typename } query B { __typename }'],
])('it is %s that this is compiled: %s', (expected, text) => {
  const document = parse(text);
  const node = getOperationAST(document, 'A') ?? (document.definitions[0] as OperationDefinitionNode);
  expect(isSuitable({ document, node, type: node.operation, hasDirectives: false } as Operation)).toBe(expected);
});
