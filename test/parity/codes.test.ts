// runs: embedded, postgres, plugins

import { readFileSync } from 'node:fs';
import { createSecret } from '#engine/access/keys/secret.js';
import { httpStatusOf, restCodes } from '#engine/errors.js';
import { whileReadsFail, whileWritesWait } from '../support/database-access.ts';
import { forgetFields } from '../support/field-resolvers.ts';
import { graphqlText } from '../support/graphql.ts';
import { expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type RestRequest, rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import {
  onNode,
  type ServiceNode,
  startStore,
  storeForAll,
} from '../support/store.ts';
import { documentedErrors, documentedFieldError } from './documented-errors.ts';

/**
 * The error codes of both APIs: each can be provoked, there are no others, and
 * docs/errors.md shows the responses.
 */

const store = storeForAll();

const { description } = JSON.parse(readFileSync('schema/openapi.json', 'utf8'))
  .components.schemas.Error.properties.code;
const listed: string[] = description
  .replace(/^Machine-readable error code: (.+)\.$/, '$1')
  .split(', ');

const refusal = async (
  path: string,
  request: RestRequest = {},
): Promise<unknown> => (await rest(store, path, request)).json;

async function raw(head: string): Promise<unknown> {
  const headers = `Authorization: Bearer ${store.key}\r\n${head}`;
  const [response] = await exchange(
    store,
    requestText('POST /v1/pets', headers),
  );
  return JSON.parse(response?.text ?? '');
}

const post = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const keyed = { ...post, headers: { 'idempotency-key': 'the-key-of-rex' } };

const ofRest: Record<string, () => Promise<unknown>> = {
  BAD_USER_INPUT: () => refusal('/v1/pets?limit=0'),
  UNAUTHENTICATED: () => refusal('/v1/pets', { key: null }),
  async FORBIDDEN() {
    const { key } = await store.keys.issue({ name: 'r', scope: 'read' });
    return refusal('/v1/pets', { ...post, key });
  },
  NOT_FOUND: () => refusal('/v1/nothing'),
  METHOD_NOT_ALLOWED: () => refusal('/v1/pets', { method: 'PUT' }),
  REQUEST_TIMEOUT: () =>
    onNode(store, { REQUEST_TIMEOUT_MS: '1' }, async (node) => {
      const [response] = await exchange(
        node,
        'POST /v1/pets HTTP/1.1\r\nHost: a\r\n',
      );
      return JSON.parse(response?.text ?? '');
    }),
  async CONFLICT() {
    // Pets cannot be changed. Not imported above, because its fields would be
    // in the schema of the other store.
    const { checkupsModule } = await import(
      '../modules/checkups/checkups.module.ts'
    );
    const other = await startStore({}, { more: [checkupsModule] });
    const { json: pet } = await rest(other, '/v1/pets', post);
    const checkup = {
      method: 'POST',
      json: { petId: pet.id, reason: 'x-ray' },
    };
    const path = `/v1/checkups/${(await rest(other, '/v1/checkups', checkup)).json.id}`;
    const change = { method: 'PATCH', json: { version: 1, note: 'fine' } };
    const conflicts = [
      await rest(other, path, change),
      await rest(other, path, change),
    ];
    await other.close();
    forgetFields({ Pet: ['checkups'], Checkup: ['pet'] });
    return conflicts[1]?.json;
  },
  IDEMPOTENCY_KEY_IN_USE: () =>
    onNode(store, { DATABASE_STATEMENT_TIMEOUT_MS: '1' }, (node) =>
      whileWritesWait(store.database, async () => {
        const both = await Promise.all([
          rest(node, '/v1/pets', keyed),
          rest(node, '/v1/pets', keyed),
        ]);
        return both.find(({ status }) => status === 409)?.json;
      }),
    ),
  PAYLOAD_TOO_LARGE: () =>
    raw('Content-Type: application/json\r\nContent-Length: 9999999\r\n'),
  UNSUPPORTED_MEDIA_TYPE: () =>
    refusal('/v1/pets', { ...post, headers: { 'content-type': 'text/plain' } }),
  async IDEMPOTENCY_KEY_REUSED() {
    const once = { ...keyed, headers: { 'idempotency-key': 'the-key-of-ada' } };
    await rest(store, '/v1/pets', once);
    return refusal('/v1/pets', {
      ...once,
      json: { name: 'Ada', categoryId: 1 },
    });
  },
  TOO_MANY_REQUESTS: () =>
    onNode(store, { AUTH_FAILURES_PER_MINUTE: '1' }, async (node) => {
      const guess = () => rest(node, '/v1/pets', { key: createSecret() });
      await guess();
      return (await guess()).json;
    }),
  REQUEST_HEADER_FIELDS_TOO_LARGE: () =>
    raw(`X-Long: ${'x'.repeat(20_000)}\r\n`),
  INTERNAL_SERVER_ERROR: () =>
    whileReadsFail(store.database, 'XX000', () => refusal('/v1/pets')),
  NOT_IMPLEMENTED: () => refusal('/v1/store/orders'),
  SERVICE_UNAVAILABLE: () =>
    whileReadsFail(store.database, '57P03', () => refusal('/v1/pets')),
};

test('the description of Error.code lists exactly the codes of REST', () => {
  // Provoked in features/changes/live-items.test.ts.
  const here = listed.filter((code) => code !== 'GONE');
  expect(here).toEqual(Object.keys(ofRest));
});

const times = (count: number, text: string) =>
  Array.from({ length: count }, () => text).join(' ');
const execute = async (
  body: object,
  { origin, key } = store as Pick<ServiceNode, 'origin' | 'key'>,
  headers = {},
) => JSON.parse((await graphqlText({ origin, key }, body, key, headers)).text);
const executeOn = (env: Record<string, string>, body: object) =>
  onNode(store, env, (node) => execute(body, node));
const hashAlone = {
  extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } },
};

const ofGraphQL: Record<string, () => Promise<unknown>> = {
  GRAPHQL_PARSE_FAILED: () => execute({ query: '{ pets' }),
  GRAPHQL_VALIDATION_FAILED: () =>
    execute({ query: '{ pets(status: Sold) { id } }' }),
  NOT_ACCEPTABLE: () =>
    execute({ query: '{ pets { id } }' }, store, { accept: 'text/plain' }),
  TOO_MANY_TOKENS: () => execute({ query: `{ ${times(1001, 'name')} }` }),
  QUERY_TOO_DEEP: () =>
    execute({
      query: `{ __schema { types { fields { type ${times(13, '{ ofType')} { name } ${times(13, '}')} } } } }`,
    }),
  TOO_MANY_ALIASES: () =>
    execute({ query: `{ pets { ${times(51, 'a: id')} } }` }),
  QUERY_TOO_COSTLY: () =>
    executeOn(
      { GRAPHQL_MAX_COST: '100' },
      { query: '{ pets(limit: 100) { id } }' },
    ),
  PERSISTED_QUERY_NOT_FOUND: () =>
    executeOn({ GRAPHQL_APQ: 'true' }, hashAlone),
  PERSISTED_QUERY_NOT_SUPPORTED: () => execute(hashAlone),
};

// Citus allows no foreign key of the checkups.
const provoked = Object.entries({ ...ofRest, ...ofGraphQL }).filter(
  ([code]) => !citusLayout || code !== 'CONFLICT',
);
test.each(provoked)(
  'docs/errors.md shows the body of %s',
  async (code, send) => {
    const response = await send();
    const error = {
      code,
      status: expect.any(Number),
      message: expect.any(String),
    };
    if (code in ofRest)
      expect(response).toEqual({
        ...error,
        ...(code === 'CONFLICT' && { version: 2 }),
      });
    expect(documentedErrors.get(code)).toEqual(response);
  },
);

test('docs/errors.md has a chapter for every code, and for no other', () => {
  const codes = new Set([
    ...restCodes,
    ...Object.keys(httpStatusOf),
    ...Object.keys(ofGraphQL),
  ]);
  expect([...documentedErrors.keys()].sort()).toEqual([...codes].sort());
});

test('docs/errors.md shows the response of GraphQL to a field that fails', async () => {
  expect(await execute({ query: '{ pets(limit: 0) { id } }' })).toEqual(
    documentedFieldError,
  );
});
