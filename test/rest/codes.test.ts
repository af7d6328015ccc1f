import { readFileSync } from 'node:fs';
import { whileReadsFail, whileWritesWait } from '../support/database-access.ts';
import { documentedErrors } from '../support/errors-page.ts';
import { expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type RestRequest, rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/** The vocabulary of REST: every word of it can be heard, and no other. */

const store = storeForAll();

const { description } = JSON.parse(readFileSync('schema/openapi.json', 'utf8')).components.schemas.Error.properties
  .code;
const listed: string[] = description.replace(/^Machine-readable error code: (.+)\.$/, '$1').split(', ');

interface Refusal {
  code: string;
  status: number;
}

async function refusal(path: string, request: RestRequest = {}): Promise<Refusal> {
  return (await rest(store, path, request)).json;
}

async function raw(head: string): Promise<Refusal> {
  const headers = `Authorization: Bearer ${store.key}\r\n${head}`;
  const [response] = await exchange(store, requestText('POST /v1/pets', headers));
  return JSON.parse(response?.text ?? '');
}

const post = { method: 'POST', json: { name: 'Rex', categoryId: 1 } };
const keyed = { ...post, headers: { 'idempotency-key': 'the-key-of-rex' } };

const heard: Record<string, [status: number, how: () => Promise<Refusal>]> = {
  BAD_USER_INPUT: [400, () => refusal('/v1/pets?limit=0')],
  UNAUTHENTICATED: [401, () => refusal('/v1/pets', { key: null })],
  FORBIDDEN: [
    403,
    async () => refusal('/v1/pets', { ...post, key: (await store.keys.issue({ name: 'r', scope: 'read' })).key }),
  ],
  NOT_FOUND: [404, () => refusal('/v1/nothing')],
  METHOD_NOT_ALLOWED: [405, () => refusal('/v1/pets', { method: 'PUT' })],
  REQUEST_TIMEOUT: [
    408,
    () =>
      onNode(store, { REQUEST_TIMEOUT_MS: '1' }, async (node) => {
        const [response] = await exchange({ ...store, ...node }, 'POST /v1/pets HTTP/1.1\r\nHost: a\r\n');
        return JSON.parse(response?.text ?? '');
      }),
  ],
  IDEMPOTENCY_KEY_IN_USE: [
    409,
    () =>
      onNode(store, { DATABASE_STATEMENT_TIMEOUT_MS: '1' }, (node) =>
        whileWritesWait(store.database, async () => {
          const both = await Promise.all([rest(node, '/v1/pets', keyed), rest(node, '/v1/pets', keyed)]);
          return both.find(({ status }) => status === 409)?.json;
        }),
      ),
  ],
  PAYLOAD_TOO_LARGE: [413, () => raw('Content-Type: application/json\r\nContent-Length: 9999999\r\n')],
  UNSUPPORTED_MEDIA_TYPE: [415, () => refusal('/v1/pets', { ...post, headers: { 'content-type': 'text/plain' } })],
  IDEMPOTENCY_KEY_REUSED: [
    422,
    async () => {
      const once = { ...keyed, headers: { 'idempotency-key': 'the-key-of-ada' } };
      await rest(store, '/v1/pets', once);
      return refusal('/v1/pets', { ...once, json: { name: 'Ada', categoryId: 1 } });
    },
  ],
  TOO_MANY_REQUESTS: [
    429,
    () =>
      onNode(store, { QUOTA_PER_MINUTE: '2' }, async (node) => {
        for (let call = 0; call < 2; call += 1) await rest(node, '/v1/pets');
        return (await rest(node, '/v1/pets')).json;
      }),
  ],
  REQUEST_HEADER_FIELDS_TOO_LARGE: [431, () => raw(`X-Long: ${'x'.repeat(20_000)}\r\n`)],
  INTERNAL_SERVER_ERROR: [500, () => whileReadsFail(store.database, 'XX000', () => refusal('/v1/pets'))],
  NOT_IMPLEMENTED: [501, () => refusal('/v1/store/orders')],
  SERVICE_UNAVAILABLE: [503, () => whileReadsFail(store.database, '57P03', () => refusal('/v1/pets'))],
};

test('Error.code lists exactly the codes that REST answers', () => {
  expect(listed).toEqual(Object.keys(heard));
});

test.each(Object.keys(heard))('REST answers %s, as docs/errors.md shows it', async (code) => {
  const [status, how] = heard[code] as (typeof heard)[string];
  const answer = await how();
  expect(answer).toEqual({ code, status, message: expect.any(String) });
  expect(documentedErrors.get(code)).toEqual(answer);
});
