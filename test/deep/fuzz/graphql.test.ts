import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { buildSchema } from 'graphql';
import { type HttpRequest, send, toJson } from '../../support/http.ts';
import { storeForAll } from '../../support/store.ts';
import { assertGraphQLAnswer } from './answers.ts';
import { documents } from './documents.ts';
import { fuzz } from './fuzz.ts';
import { anyJson, mutated, value, variables } from './values.ts';

const wellFormed = documents(
  buildSchema(readFileSync('schema/schema.graphql', 'utf8')),
);
const large = fc.constantFrom(
  `{ ${'pets { id } '.repeat(60)} }`,
  `{ ${Array.from({ length: 60 }, (_, index) => `a${index}: pets { id }`).join(' ')} }`,
  `{ pets { id ${'@include(if: true)'.repeat(60)} } }`,
  `{ pets { ${'... { '.repeat(400)} id ${'} '.repeat(400)} } }`,
  `${'{ pets '.repeat(5000)}`,
  `{ pets { ...A } } fragment A on Pet { ...A }`,
  `{ pets { ...A } } fragment A on Pet { ...B } fragment B on Pet { ...A id }`,
  `{ ${Array.from({ length: 50 }, (_, index) => `a${index}: pets(limit: 100) { id name categoryId status }`).join(' ')} }`,
  `{ __schema { types { ${'ofType { '.repeat(20)} name ${'} '.repeat(20)} } } }`,
  `query ($${'a'.repeat(5000)}: Int) { pets(limit: $${'a'.repeat(5000)}) { id } }`,
);
const document = fc.oneof(
  { weight: 12, arbitrary: wellFormed },
  { weight: 3, arbitrary: mutated(wellFormed) },
  { weight: 1, arbitrary: fc.oneof(fc.string({ unit: 'binary' }), large) },
);

const operationName = fc.constantFrom<unknown[]>(
  'Operation0',
  'Operation1',
  'Nobody',
  null,
  '',
  5,
);
const persisted = {
  persistedQuery: { version: 1, sha256Hash: 'ab'.repeat(32) },
};
const body = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record(
      {
        query: document,
        variables: fc.oneof({ weight: 20, arbitrary: variables }, value),
      },
      { requiredKeys: ['query'], noNullPrototype: true },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        query: document,
        variables,
        operationName,
        extensions: fc.oneof(fc.constantFrom({}, persisted), value),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.array(fc.record({ query: document }), { maxLength: 3 }),
  },
);
const json = body.map(toJson);

const accepted = [
  'application/json',
  'application/graphql-response+json',
  'text/html',
  'multipart/mixed',
  ';',
  '',
];
const sent = [
  'application/json;charset=utf-8',
  'text/plain',
  'application/graphql',
  'multipart/form-data; boundary=x',
];
const unusual = fc.record(
  {
    accept: fc.constantFrom(...accepted),
    'content-type': fc.constantFrom('application/json', ...sent),
    'content-encoding': fc.constantFrom('gzip', 'br'),
    'apollo-require-preflight': fc.constant('1'),
  },
  { requiredKeys: [] },
);
const headers = fc.oneof<fc.MaybeWeightedArbitrary<Record<string, string>>[]>(
  { weight: 8, arbitrary: fc.constant({ 'content-type': 'application/json' }) },
  { weight: 1, arbitrary: unusual as fc.Arbitrary<Record<string, string>> },
);

const posted = fc.record({
  method: fc.constant('POST'),
  path: fc.constant('/graphql'),
  headers,
  body: fc.oneof<fc.MaybeWeightedArbitrary<string | Buffer>[]>(
    { weight: 20, arbitrary: json },
    { weight: 2, arbitrary: mutated(json) },
    { weight: 1, arbitrary: anyJson },
    {
      weight: 1,
      arbitrary: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    },
  ),
});
const parameters = fc.record(
  {
    query: document,
    variables: fc.oneof(variables.map(toJson), anyJson),
    operationName: fc.constantFrom('Operation0', ''),
    extensions: anyJson,
  },
  { requiredKeys: ['query'], noNullPrototype: true },
);
const got = fc
  .record({
    search: parameters,
    headers,
    method: fc.constantFrom('GET', 'GET', 'HEAD'),
  })
  // The byte-level requests cover longer request lines.
  .map(({ search, ...request }) => ({
    ...request,
    path: `/graphql?${new URLSearchParams(search)}`.slice(0, 12_000),
  }));

fuzz(storeForAll(), {
  name: 'GraphQL requests',
  share: 0.45,
  request: fc.oneof<fc.MaybeWeightedArbitrary<HttpRequest>[]>(
    { weight: 6, arbitrary: posted },
    { weight: 1, arbitrary: got },
  ),
  async send(request, { origin, key }) {
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    const response = await send(origin, { ...request, headers });
    return request.method === 'HEAD'
      ? [`HEAD ${response.status}`]
      : assertGraphQLAnswer(response);
  },
  show: ({ body, ...request }) =>
    `${JSON.stringify(request)} with the body ${`${body}`.slice(0, 2000)}`,
});
