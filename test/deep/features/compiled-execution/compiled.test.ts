import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  buildSchema,
  getIntrospectionQuery,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import {
  type DocumentOptions,
  Operation,
} from '#engine/api/graphql/document.js';
import { interpreter } from '#engine/api/graphql/execution.js';
import { isSuitable } from '#engine/features/compiled-execution/compiler.js';
import { stock } from '../../../support/database-access.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { toJson } from '../../../support/http.ts';
import {
  beforeAll,
  cases,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import { type Store, storeForAll } from '../../../support/store.ts';
import { documents } from '../../fuzz/documents.ts';
import { variables } from '../../fuzz/values.ts';
import { heapUsed } from '../../support/heap.ts';

/**
 * A compiled operation has the same response as in graphql-js, to the byte. A
 * store that compiles and one that interprets get the same requests, so that
 * even ids of created animals must agree. Each request is sent three times:
 * interpreted the first time, compiled the second, from the cache the third;
 * and then with other variables.
 *
 * DIFFERENTIAL_DOCUMENTS (3000; a tenth in `npm test`) and DIFFERENTIAL_SEED
 * (random) come from the environment.
 */
const wanted = cases(3000, 'DIFFERENTIAL_DOCUMENTS');
const seed = Number(
  process.env.DIFFERENTIAL_SEED ?? Math.floor(Math.random() * 2 ** 31),
);

const compiled = storeForAll({ GRAPHQL_JIT: 'true' });
const interpreted = storeForAll({ GRAPHQL_JIT: 'false' });
beforeAll(async () => {
  for (const { database } of [compiled, interpreted]) await stock(database, 4);
});

async function respond(store: Store, body: string): Promise<string> {
  const { status, headers, text } = await graphqlText(store, body);
  return `${status} ${headers['content-type']} ${text}`;
}

/** @returns the response of the interpreting store */
async function assertEqual(request: object, times = 3): Promise<string> {
  const body = toJson(request);
  let response = '';
  for (let time = 1; time <= times; time += 1) {
    const [expected, actual] = await Promise.all([
      respond(interpreted, body),
      respond(compiled, body),
    ]);
    expect({ time, response: actual }).toEqual({ time, response: expected });
    response = expected;
  }
  return response;
}

const schema = buildSchema(readFileSync('schema/schema.graphql', 'utf8'));
const onPet = 'fragment P on Pet { name status }';
const onQuery = 'fragment Q on Query { pets(limit: 1) { id } }';

describe('conditions, fragments and variables have equal responses', () => {
  test.each([
    `query($a: Boolean!) { pets(limit: 1) { id ...P @include(if: $a) ...P } } ${onPet}`,
    `query($a: Boolean!) { pets(limit: 1) { id ...P ...P @include(if: $a) } } ${onPet}`,
    `query($a: Boolean!) { pets(limit: 1) { id ... @skip(if: $a) { ...P } ...P } } ${onPet}`,
    `query($a: Boolean!) { pets(limit: 1) { ...R @include(if: $a) ...P } } ${onPet} fragment R on Pet { ...P id }`,
    `query($a: Boolean!) { ...Q @include(if: $a) ...Q } ${onQuery}`,
    `query($a: Boolean!) { pets(limit: 1) @include(if: $a) { ...P } pets(limit: 1) { id } } ${onPet}`,
    `query($a: Boolean!) { pets(limit: 1) @include(if: $a) { name } pets(limit: 1) { id } }`,
    `query($a: Boolean!) { petsConnection(first: 1) { edges { node { id ...P @skip(if: $a) ...P } } } } ${onPet}`,
    `query($a: Boolean!) { petsConnection(first: 1) @skip(if: $a) { ...C } petsConnection(first: 1) { pageInfo { endCursor } } } fragment C on PetConnection { pageInfo { hasNextPage } }`,
    `mutation($a: Boolean!) { createPet(input: { name: "Rex", categoryId: 1 }) { id ...P @include(if: $a) ...P } } ${onPet}`,
    `mutation($a: Boolean!) { createPet(input: { name: "Rex", categoryId: 1 }) @skip(if: $a) { id } }`,
    `query($a: Boolean = true) { pets(limit: 1) { id name @include(if: $a) } }`,
    `mutation($a: String = "Rex") { createPet(input: { name: $a, categoryId: 1 }) { id } }`,
    `mutation($a: PetStatus = sold) { createPet(input: { name: "Rex", categoryId: 1, status: $a }) { id } }`,
  ])('%s', async (query) => {
    for (const a of [true, false, null, undefined, 'yes'])
      await assertEqual({ query, variables: { a } });
  });
});

test('fields after a failed mutation are not executed', async () => {
  const create = (name: string) =>
    `createPet(input: { name: "${name}", categoryId: 1 }) { id }`;
  await assertEqual({
    query: `mutation { a: ${create('\\u0000')} b: ${create('b')} }`,
  });
  // The next id shows whether the second creation ran.
  await assertEqual({ query: `mutation { ${create('c')} }` });
});

test('variables with the names of inherited members have equal responses', async () => {
  for (const name of [
    'toString',
    'constructor',
    'valueOf',
    'hasOwnProperty',
    '__proto__',
  ]) {
    const query = `query($${name}: Int) { pets(limit: $${name}) { id } }`;
    for (const given of [{}, { [name]: 2 }])
      await assertEqual({ query, variables: given });
    await assertEqual({ query: query.replace(': Int)', ': Int = 3)') });
  }
});

test.each([
  ['a document with one operation', '{ __typename }'],
  ['a document with several', 'query A { __typename } query B { __typename }'],
])(
  'the service keeps nothing of an unknown operationName of 1 MB, in %s',
  async (_what, query) => {
    const execute = async (operationName: string) => {
      const { errors, text } = await graphqlText(compiled, {
        query,
        operationName,
      });
      expect(errors?.map(({ extensions }) => extensions)).toEqual([
        { code: 'BAD_USER_INPUT', status: 400 },
      ]);
      expect(errors?.[0]?.message).toMatch(/^Unknown operation named "/);
      expect(text.length).toBeLessThan(2000);
    };
    for (let at = 0; at < 5; at += 1)
      await execute(`${at}`.padEnd(1_000_000, 'x'));
    const before = heapUsed();
    for (let at = 5; at < 105; at += 1)
      await execute(`${at}`.padEnd(1_000_000, 'x'));
    // 100 MB were sent.
    expect((heapUsed() - before) / 1024 / 1024).toBeLessThan(40);
  },
);

test.each([
  [true, '{ petsConnection { edges { node { __typename } } } }'],
  [false, getIntrospectionQuery()],
  [
    false,
    '{ ...F } fragment F on Query { ... { __type(name: "Pet") { fields { name } } } }',
  ],
  [false, 'query A { __typename } query B { __typename }'],
  [true, '# me@shop.example\n{ pets { id } }'],
  [false, '{ pets { id @skip(if: true) } }'],
  [true, 'mutation { createPet(input: { name: "a", categoryId: 1 }) { id } }'],
])('it is %s that this document is compiled: %s', (expected, text) => {
  const document = parse(text);
  const node =
    getOperationAST(document, 'A') ??
    (document.definitions[0] as OperationDefinitionNode);
  const limits = { maxCost: 6000 } as DocumentOptions['limits'];
  const options = {
    schema,
    limits,
    executor: interpreter({ schema, introspection: true, observers: [] }),
  } as Partial<DocumentOptions> as DocumentOptions;
  expect(isSuitable(new Operation(document, node, options))).toBe(expected);
});

// Fragments and aliases are more frequent than in the fuzz suite; half of the
// documents have many directives, one in five is faulty.
const document = fc.oneof(
  ...[4, 8, 4, 8].map((odds) =>
    documents(schema, { odds, mayBeFaulty: false }),
  ),
  documents(schema, { odds: 6 }),
);
const operationName = fc.constantFrom(
  'Operation0',
  'Operation1',
  '',
  'Nobody',
  null,
);

test(`${wanted} random documents have equal responses, compiled and interpreted, DIFFERENTIAL_SEED=${seed}`, async () => {
  const counts = { documents: 0, conditional: 0, withData: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(
      document,
      variables,
      variables,
      operationName,
      async (query, first, second, name) => {
        const named = query.includes('Operation1')
          ? { operationName: name }
          : {};
        counts.documents += 1;
        for (const [given, times] of [
          [first, 3],
          [second, 1],
        ] as const) {
          const response = await assertEqual(
            { query, variables: given, ...named },
            times,
          );
          if (/@(?:skip|include)/.test(query)) counts.conditional += 1;
          if (/"data":\{/.test(response)) counts.withData += 1;
          if (!response.includes('"data"')) counts.refused += 1;
        }
      },
    ),
    // Of two responses one has data on average, of a seed sometimes fewer.
    { numRuns: Math.ceil(1.5 * wanted), seed, endOnFailure: false },
  );
  console.log(`differential run, seed ${seed}: ${JSON.stringify(counts)}`);
  expect(counts.documents).toBeGreaterThanOrEqual(wanted);
  expect(counts.withData).toBeGreaterThan(wanted);
}, 900_000);
