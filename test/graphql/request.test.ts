import {
  acceptedIn,
  mediaTypes,
  type Outcome,
  statusOf,
  Unprocessable,
} from '#engine/api/graphql/answer.js';
import {
  type FindDocument,
  readParameters,
} from '#engine/api/graphql/handler.js';
import { expect, test } from '../support/jest.ts';

/** A request of GraphQL over HTTP, and the status of its response. */

const { json, response } = mediaTypes;
const events = 'text/event-stream; charset=utf-8';

test.each([
  [undefined, json, undefined, false],
  ['application/graphql-response+json', response, undefined, false],
  ['text/html', undefined, undefined, false],
  ['text/event-stream', json, events, true],
  ['application/json, text/event-stream', json, events, false],
  [
    'multipart/mixed;subscriptionSpec=1.0',
    json,
    'multipart/mixed; boundary="graphql"; subscriptionSpec="1.0"',
    false,
  ],
  [
    'application/json, multipart/mixed ;boundary="-"; subscriptionSpec="1.0"',
    json,
    'multipart/mixed; boundary="graphql"; subscriptionSpec="1.0"',
    false,
  ],
  ['multipart/mixed;subscriptionSpec=2.0', undefined, undefined, false],
  [
    'multipart/mixed, text/html;subscriptionSpec=1.0',
    undefined,
    undefined,
    false,
  ],
])('Accept: %s', (accept, mediaType, stream, prefersEvents) => {
  const accepted = acceptedIn({ headers: { accept } });
  expect({ ...accepted, stream: accepted.stream?.mediaType }).toEqual({
    mediaType,
    stream,
    prefersEvents,
  });
});

const syntaxError = { extensions: { code: 'GRAPHQL_PARSE_FAILED' } };

test.each([
  [{ data: {} }, 200, 200],
  [{ data: {}, errors: [{}] }, 200, 294],
  [{ errors: [{}], failures: [syntaxError] }, 200, 400],
  [{ errors: [{}], failures: [{ extensions: {} }], status: 400 }, 200, 422],
  [{ errors: [{ extensions: { status: 403 } }], status: 500 }, 403, 403],
])('the status of %j', (result, asJson, asResponse) => {
  const outcome = result as unknown as Outcome;
  const statuses = [json, response].map((type) =>
    statusOf(outcome, type, true),
  );
  expect(statuses).toEqual([asJson, asResponse]);
});

const post = (body: unknown, findDocument?: FindDocument) =>
  readParameters(
    { method: 'POST', headers: {}, query: {}, body },
    findDocument,
  );
const get = (query: unknown, headers = {}) =>
  readParameters({ method: 'GET', headers, query, body: undefined });

test('parameters come from the body or the query string; null and empty ones are absent', () => {
  expect(
    post({
      query: '{ a }',
      operationName: null,
      variables: { n: 1 },
      documentId: '',
    }),
  ).toEqual({
    query: '{ a }',
    variables: { n: 1 },
  });
  expect(
    get({ query: '{ a }', operationName: '', variables: '{"n":1}' }),
  ).toEqual({
    query: '{ a }',
    variables: { n: 1 },
  });
});

test.each([
  [[]],
  [{}],
  [{ query: 1 }],
  [{ query: '{ a }', variables: [] }],
  [{ documentId: 'a' }],
])('the body %j is refused', (body) => {
  expect(() => post(body)).toThrow(Unprocessable);
});

test('a GET has no body of another type', () => {
  const refused = expect.objectContaining({
    code: 'UNSUPPORTED_MEDIA_TYPE',
  }) as never;
  expect(() =>
    get({ query: '{ a }' }, { 'content-type': 'text/plain' }),
  ).toThrow(refused);
});

test('findDocument adds the text that other parameters name', () => {
  const findDocument = ({ documentId }: { documentId?: unknown }) => ({
    query: `{ ${documentId} }`,
  });
  expect(post({ documentId: 'a' }, findDocument).query).toBe('{ a }');
});
