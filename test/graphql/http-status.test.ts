import { hash } from 'node:crypto';
import { createSecret } from '#engine/access/keys/secret.js';
import { graphqlText } from '../support/graphql.ts';
import { type HttpRequest, type HttpResponse, send } from '../support/http.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { type ServiceNode, startNode, storeForAll } from '../support/store.ts';

/**
 * The table of docs/graphql.md: every outcome with every kind of `Accept`, by
 * GraphQL over HTTP of September 2026. With `application/json` a client must
 * not believe the body of a 4xx (section 6.4).
 */

const store = storeForAll();
const nodes = {} as Record<'apq' | 'strict' | 'guarded', ServiceNode>;
beforeAll(async () => {
  nodes.apq = await startNode(store, { GRAPHQL_APQ: 'true' });
  nodes.strict = await startNode(store, { GRAPHQL_MAX_COST: '10' });
  nodes.guarded = await startNode(store, { AUTH_FAILURES_PER_MINUTE: '1' });
});
afterAll(() => Promise.all(Object.values(nodes).map((node) => node.close())));

const json = 'application/json';
const response = 'application/graphql-response+json';

type Sent = Omit<HttpRequest, 'path'> & { path?: string };
/**
 * The members of a response: its data, or the code, the message and the place
 * of its error.
 */
interface Expected {
  data?: unknown;
  code?: string;
  status?: number;
  message?: unknown;
  locations?: unknown;
  path?: string[];
}
/**
 * The statuses are those for `application/graphql-response+json` and for
 * `application/json`.
 */
type Case = [
  what: string,
  statuses: [number, number],
  request: Sent,
  expected: Expected,
  of?: keyof typeof nodes,
];

const withKey = (key: string) => ({ authorization: `Bearer ${key}` });
const post = (body: unknown, type = json): Sent => ({
  method: 'POST',
  headers: { 'content-type': type },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const get = (parameters: Record<string, string>): Sent => ({
  path: `/graphql?${new URLSearchParams(parameters)}`,
});
const failed = (code: string, status: number, place = {}): Expected => ({
  code,
  status,
  ...place,
});
const text = (message?: string | RegExp) =>
  message && {
    message:
      typeof message === 'string' ? message : expect.stringMatching(message),
  };
const badInput = (message?: string | RegExp, place = {}) =>
  failed('BAD_USER_INPUT', 400, { ...text(message), ...place });
const at = (line: number, column: number) => ({
  locations: [{ line, column }],
});
const typename = { query: '{ __typename }' };
const isQuery = { data: { __typename: 'Query' } };
const find = 'query Find($id: ID!) { pet(id: $id) { id } }';
const create =
  'mutation { createPet(input: { name: "", categoryId: "x" }) { id } }';
const twoQueries =
  'query A($limit: Int) { pets(limit: $limit) { id } } query B { __typename }';
const noKey = failed(
  'UNAUTHENTICATED',
  401,
  text('An API key is required: Authorization: Bearer <API_KEY>.'),
);
const notAllowed = (message: string) =>
  failed('METHOD_NOT_ALLOWED', 405, text(message));
const onlyQueries = notAllowed(
  'By GET only queries are answered: send a mutation by POST, and a subscription with an `Accept` that names a stream.',
);
const onlyJson = failed(
  'UNSUPPORTED_MEDIA_TYPE',
  415,
  text('A GET request must have no Content-Type other than application/json.'),
);
const ofType = (type: string, more = {}): Sent => ({
  ...get(typename),
  headers: { 'content-type': type, ...more },
});
const addRex =
  'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id } }';
const sha256Hash = hash('sha256', typename.query);
const persisted = (sha256Hash: string) =>
  post({ extensions: { persistedQuery: { version: 1, sha256Hash } } });
const notSupported = failed('PERSISTED_QUERY_NOT_SUPPORTED', 400);
const noBody = badInput(
  'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.',
);
const noQuery = badInput(
  'There is no `query`: it must be the text of an operation.',
);
const noBatch = badInput(
  'The body must be one operation, a JSON object: a list of them is not accepted.',
);
const noString = badInput('`query` must be a string.');
const noVariables = badInput('`variables` must be an object.');
const noName = badInput(
  'Must provide operation name if query contains multiple operations.',
);

test.each([
  ['variables', (members: object) => ({ id: '1', ...members })],
  ['an object of a scalar', (members: object) => ({ id: members })],
  ['objects in a list', (members: object) => ({ id: '1', a: [[members]] })],
])('too many members in %s are refused unread', async (_what, variables) => {
  const query = 'query ($id: ID!) { pet(id: $id) { id } }';
  const members = Object.fromEntries(
    Array.from({ length: 10_001 }, (_, at) => [`m${at}`, 1]),
  );
  const answer = await graphqlText(store, {
    query,
    variables: variables(members),
  });
  expect(answer.errors).toMatchObject([
    { message: 'The objects in `variables` have more than 10000 members.' },
  ]);
});

test('a document has at most 50 errors, and one that says so', async () => {
  const names = Array.from({ length: 300 }, (_, at) => `x${at}`);
  const query = `{ ${names.join(' ')} }`;
  const { errors = [] } = await graphqlText(store, { query });
  expect(errors).toHaveLength(51);
  expect(errors.at(-1)?.message).toMatch(/^Too many validation errors/);
});

/** A field that is null because of an error. */
const nullAt = (column: number, path: string, message?: RegExp): Expected => ({
  data: null,
  ...badInput(message, { ...at(1, column), path: [path] }),
});

/** Documents that are refused before any resolver runs. */
const documents: Array<[query: string, message: string | RegExp]> = [
  ['{ pets {', 'Syntax Error: Expected Name, found <EOF>.'],
  [
    '{ pets(after: "\\ud800") { id } }',
    /^Syntax Error: Invalid Unicode escape/,
  ],
  ['{ nothing }', 'Cannot query field "nothing" on type "Query".'],
  [
    '{ pets(limit: "5") { id } }',
    'Int cannot represent non-integer value: "5"',
  ],
  [
    '{ pets(status: Sold) { id } }',
    /^Value "Sold" does not exist in "PetStatus" enum\. Did you mean the enum value "sold"\?$/,
  ],
  [
    '{ pets(after: 1.5) { id } }',
    /^ID cannot represent value: .+\. It must be a string, or an integer in plain digits\.$/,
  ],
  // What scanners of GraphQL services try (graphql-cop, InQL, Damn Vulnerable
  // GraphQL Application).
  ['{ pets\u0000 { id } }', /^Syntax Error/],
  ['{ pets\ud800 }', /^Syntax Error/],
  ['{ _service { sdl } }', /^Cannot query field "_service"/],
  [
    'subscription { pets { id } }',
    'Cannot query field "pets" on type "Subscription".',
  ],
];
const twoOperations = {
  query: 'query A { pets { id }} subscription B { pets { id } }',
  operationName: 'B',
};
const noSubscription = text(
  'Cannot query field "pets" on type "Subscription".',
);

const cases: Case[] = [
  [
    'data',
    [200, 200],
    post({ query: '{ pets { id } }' }),
    { data: { pets: [] } },
  ],
  ...[
    '\ufeff{"query":"{__typename}"}',
    '{"query":"{__typename}","variables":null,"extensions":null,"operationName":null}',
    '{"query":"query A{nothing} ","query":"{__typename}"}',
    '{"query":"query A{__typename} query B{pets{id}}","operationName":"A"}',
    '{"query":"{__typename}","__proto__":{"query":"{nothing}"},"constructor":{"prototype":{}}}',
  ].map((body): Case => [body, [200, 200], post(body), isQuery]),
  [
    'a query by GET',
    [200, 200],
    get({
      query: twoQueries,
      variables: '{"limit":5}',
      operationName: 'A',
      extensions: '{}',
    }),
    { data: { pets: [] } },
  ],
  [
    'extensions',
    [200, 200],
    post({ ...typename, extensions: { debug: true, tracing: true } }),
    isQuery,
  ],
  [
    'the header for traces',
    [200, 200],
    ofType('application/json', { 'apollo-federation-include-trace': 'ftv1' }),
    isQuery,
  ],
  ['a query by GET, as JSON', [200, 200], ofType('application/json'), isQuery],
  ...['variables', 'extensions', 'operationName', 'documentId'].map(
    (name): Case => [
      `an empty ${name}`,
      [200, 200],
      get({ ...typename, [name]: '' }),
      isQuery,
    ],
  ),
  [
    'a field with an error',
    [294, 200],
    get({ query: '{ pets(limit: 0) { id } }' }),
    nullAt(3, 'pets'),
  ],
  [
    'U+0000',
    [294, 200],
    post({ query: '{ pets(after: "\\u0000") { id } }' }),
    nullAt(3, 'pets', /^after must be/),
  ],
  [
    'a mutation that is refused',
    [294, 200],
    post({ query: create }),
    nullAt(12, 'createPet'),
  ],
  [
    'a document with a syntax error',
    [400, 200],
    post({ query: '{' }),
    failed('GRAPHQL_PARSE_FAILED', 400, at(1, 2)),
  ],
  ...documents.map(([query, message]): Case => {
    const [status, why] = `${message}`.includes('Syntax Error')
      ? [400, 'PARSE']
      : [422, 'VALIDATION'];
    const place = { locations: expect.anything(), ...text(message) };
    return [
      query,
      [status, 200],
      post({ query }),
      failed(`GRAPHQL_${why}_FAILED`, 400, place),
    ];
  }),
  [
    'another operation',
    [422, 200],
    post(twoOperations),
    failed('GRAPHQL_VALIDATION_FAILED', 400, {
      ...at(1, 41),
      ...noSubscription,
    }),
  ],
  [
    'the cost',
    [422, 200],
    post({ query: '{ pets { id } }' }),
    failed('QUERY_TOO_COSTLY', 400, at(1, 1)),
    'strict',
  ],
  [
    'no such operation',
    [422, 200],
    post({ ...typename, operationName: 'B' }),
    badInput('Unknown operation named "B".'),
  ],
  [
    'none of two operations',
    [422, 200],
    post({ query: 'query A{__typename} query B{__typename}' }),
    noName,
  ],
  [
    'a variable of another type',
    [422, 200],
    post({ query: find, variables: { id: [] } }),
    badInput(/./, at(1, 12)),
  ],
  ['no query', [422, 400], post({ variables: {} }), noQuery],
  ['a query that is null', [422, 400], post({ query: null }), noQuery],
  [
    'a number for a query',
    [422, 400],
    post('{"query":9007199254740993}'),
    noString,
  ],
  ['an object for a query', [422, 400], post({ query: {} }), noString],
  ['no body', [422, 400], post(''), noBody],
  ['null', [422, 400], post('null'), noBody],
  ['a batch', [422, 400], post([{ query: addRex }]), noBatch],
  [
    'variables that are a list',
    [422, 400],
    post({ ...typename, variables: [7] }),
    noVariables,
  ],
  [
    'a number for variables',
    [422, 400],
    post('{"query":"{__typename}","variables":9007199254740993}'),
    noVariables,
  ],
  [
    'a fraction for variables',
    [422, 400],
    post('{"query":"{__typename}","variables":0.1234567890123456789}'),
    noVariables,
  ],
  [
    'a list for extensions',
    [422, 400],
    post({ ...typename, extensions: [] }),
    badInput('`extensions` must be an object.'),
  ],
  [
    'a number for a name',
    [422, 400],
    post({ ...typename, operationName: 5 }),
    badInput('`operationName` must be a string.'),
  ],
  [
    'a parameter twice',
    [422, 400],
    { path: '/graphql?query={__typename}&query={__typename}' },
    noString,
  ],
  ['no query by GET', [422, 400], get({}), noQuery],
  [
    'a list for variables by GET',
    [422, 400],
    get({ ...typename, variables: '[]' }),
    noVariables,
  ],
  ['a persisted query', [422, 200], persisted(sha256Hash), notSupported],
  [
    'an unknown hash',
    [422, 200],
    persisted('a'.repeat(64)),
    failed('PERSISTED_QUERY_NOT_FOUND', 400),
    'apq',
  ],
  ['a mutation by GET', [405, 405], get({ query: addRex }), onlyQueries],
  [
    'a mutation beside a query by GET',
    [405, 405],
    get({
      query: addRex.replace('n {', 'n B {').concat(' query A { __typename }'),
      operationName: 'B',
    }),
    onlyQueries,
  ],
  [
    'PUT',
    [405, 405],
    { method: 'PUT' },
    notAllowed('PUT is not possible here. Allowed: GET, HEAD, OPTIONS, POST.'),
  ],
  [
    'a body that is no JSON',
    [400, 400],
    post('{'),
    badInput(/^The body is not acceptable JSON: Expected property name/),
  ],
  [
    'variables that are no JSON',
    [400, 400],
    get({ ...typename, variables: '{' }),
    badInput(/variables .*JSON/),
  ],
  [
    'a form',
    [415, 415],
    post('query={__typename}', 'text/plain'),
    failed('UNSUPPORTED_MEDIA_TYPE', 415),
  ],
  ...[
    'text/plain; charset=application/json',
    'multipart/form-data; boundary=x',
    'json',
  ].map((type): Case => [`${type} by GET`, [415, 415], ofType(type), onlyJson]),
  ['no key', [401, 401], { headers: { authorization: '' } }, noKey],
  // Requests that a page of another origin could send.
  [
    'text and no key',
    [401, 401],
    ofType('text/plain; charset=application/json', { authorization: '' }),
    noKey,
  ],
  [
    'a preflight and no key',
    [401, 401],
    { headers: { authorization: '', 'apollo-require-preflight': 'true' } },
    noKey,
  ],
  [
    'a key in a cookie',
    [401, 401],
    { headers: { authorization: '', cookie: 'authorization=Bearer x' } },
    noKey,
  ],
  [
    'OPTIONS and no key',
    [401, 401],
    { method: 'OPTIONS', headers: { authorization: '' } },
    noKey,
  ],
  [
    'no key, at an unknown address',
    [401, 401],
    { path: '/graphql/nothing', headers: { authorization: '' } },
    noKey,
  ],
  [
    'an unknown address',
    [404, 404],
    { path: '/graphql/nothing' },
    failed('NOT_FOUND', 404),
  ],
  [
    'too large a body',
    [413, 413],
    post(`"${'x'.repeat(1_100_000)}"`),
    failed('PAYLOAD_TOO_LARGE', 413),
  ],
  [
    'guessed keys',
    [429, 429],
    { headers: withKey(createSecret()) },
    failed('TOO_MANY_REQUESTS', 429),
    'guarded',
  ],
];

/** The status and the headers, without those that differ at each request. */
const lasting = ({
  status,
  headers: { date, 'x-request-id': _id, ...headers },
}: HttpResponse) => ({ status, headers });

describe.each<[string | undefined, string]>([
  [undefined, json],
  ['application/*', json],
  // The same, with weights, which the HTTP layer of Apollo Server reads.
  ['application/json;q=0.9, application/*;q=0.1', json],
  [`${json}, ${response};q=0.5`, json],
  [response, response],
  [`${response}; charset=utf-8, ${json}; charset=utf-8; q=0.9`, response],
  // What Apollo Client, graphql-request and urql send, and what the
  // specification advises.
  [
    `${response}, application/graphql+json, ${json}, text/event-stream`,
    response,
  ],
  [`text/plain, ${response};q=0.1`, response],
])('to Accept: %s', (accept, type) => {
  test.each(cases)(
    '%s',
    async (_what, statuses, request, {
      data,
      code,
      status = 400,
      ...more
    }, of) => {
      const { origin } = of ? nodes[of] : store;
      const headers = {
        ...withKey(store.key),
        ...(accept && { accept }),
        ...request.headers,
      };
      const wait = status === 429 && { retryAfter: expect.any(Number) };
      const error = {
        message: expect.any(String),
        ...more,
        extensions: { code, status, ...wait },
      };
      // Interpreted, compiled, and from the cache.
      for (let time = 1; time <= 3; time += 1) {
        // Within the minute of this key, every further one exceeds the limit.
        if (of === 'guarded')
          await send(origin, {
            path: '/graphql',
            headers: withKey(createSecret()),
          });
        const received = await send(origin, {
          path: '/graphql',
          ...request,
          headers,
        });
        if (!request.method && !wait) {
          const head = await send(origin, {
            path: '/graphql',
            ...request,
            headers,
            method: 'HEAD',
          });
          expect(lasting(head)).toEqual(lasting(received));
          expect([head.text, head.headers['content-length']]).toEqual([
            '',
            `${Buffer.byteLength(received.text)}`,
          ]);
        }
        const expected = type === response ? statuses[0] : statuses[1];
        expect([received.status, received.headers['content-type']]).toEqual([
          expected,
          `${type}; charset=utf-8`,
        ]);
        const body = JSON.parse(received.text);
        expect(body).toEqual({
          ...(code && { errors: [error] }),
          ...(data !== undefined && { data }),
        });
        if (status === 405)
          expect(received.headers.allow).toBe('GET, HEAD, OPTIONS, POST');
        if (wait)
          expect(body.errors[0].extensions.retryAfter).toBe(
            Number(received.headers['retry-after']),
          );
      }
    },
  );

  test('no request of the table has created an animal', async () => {
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

test('an Accept with thousands of types is ignored, because parsing it would take tens of milliseconds', async () => {
  const types = 'a/b,'.repeat(3000);
  const statusAndType = async (path: string, accept: string, key = '') => {
    const { status, headers } = await send(store.origin, {
      path,
      headers: { accept, ...(key && withKey(key)) },
    });
    return [status, headers['content-type']];
  };
  const type = `${json}; charset=utf-8`;
  expect(await statusAndType('/graphql', types + response)).toEqual([
    401,
    type,
  ]);
  expect(
    await statusAndType(
      '/graphql?query={__typename}',
      types + response,
      store.key,
    ),
  ).toEqual([200, type]);
});

test('a client that accepts neither media type gets 406, and no animal is created', async () => {
  const query =
    'mutation { createPet(input: { name: "x", categoryId: 1 }) { id } }';
  const { status, headers, text } = await graphqlText(
    store,
    { query },
    store.key,
    { accept: 'image/png' },
  );
  const message =
    '`Accept` must name application/graphql-response+json or application/json, or text/event-stream or multipart/mixed;subscriptionSpec=1.0 for subscriptions.';
  const errors = [
    { message, extensions: { code: 'NOT_ACCEPTABLE', status: 406 } },
  ];
  expect([status, headers['content-type'], JSON.parse(text)]).toEqual([
    406,
    `${json}; charset=utf-8`,
    { errors },
  ]);
  expect((await rest(store, '/v1/pets')).json).toEqual([]);
});
