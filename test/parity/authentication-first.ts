import { send } from '../support/http.ts';
import { expect, test } from '../support/jest.ts';
import { exchange, requestText } from '../support/raw.ts';
import { type StartStoreOptions, storeForAll } from '../support/store.ts';

/**
 * Authentication comes first: without a valid key a request gets 401, also when
 * it has other faults.
 */
export function authenticationFirst(options?: StartStoreOptions) {
  const store = storeForAll({ BODY_LIMIT_BYTES: '1024' }, undefined, options);

  const message = 'An API key is required: Authorization: Bearer <API_KEY>.';
  const error = { code: 'UNAUTHENTICATED', message, status: 401 };
  const errors = [
    { message, extensions: { code: 'UNAUTHENTICATED', status: 401 } },
  ];
  const json = 'Content-Type: application/json\r\n';
  const length = (body: string) => `Content-Length: ${body.length}\r\n`;
  const refusals: Array<
    [status: number, line: string, headers: string, body: string]
  > = [
    [400, 'GET /v1/pets?limit=0', '', ''],
    [400, 'POST /v1/pets', json + length('{'), '{'],
    [400, 'POST /v1/pets', json + length('{}'), '{}'],
    [400, 'GET /v1/pets', 'Host: b.example\r\n', ''],
    [400, 'POST /graphql', json + length('{'), '{'],
    [400, 'GET /graphql', 'Apollo-Require-Preflight: 1\r\n', ''],
    [404, 'GET /v1/pets/0', '', ''],
    [404, 'GET /v1/pets/%ff', '', ''],
    [404, 'GET /v1/nothing', '', ''],
    [404, 'POST /v1/nothing', json + length('{'), '{'],
    [405, 'DELETE /v1/pets', '', ''],
    [405, 'TRACE /graphql', '', ''],
    [405, 'POST /livez', '', ''],
    [413, 'POST /v1/pets', `${json}Content-Length: 1025\r\n`, ''],
    [413, 'POST /graphql', `${json}Content-Length: 1025\r\n`, ''],
    [415, 'POST /v1/pets', `Content-Type: text/plain\r\n${length('x')}`, 'x'],
    [
      415,
      'POST /v1/pets',
      `${json}Content-Encoding: gzip\r\n${length('x')}`,
      'x',
    ],
    [415, 'POST /graphql', `Content-Type: text/plain\r\n${length('x')}`, 'x'],
    [501, 'GET /v1/store/orders', '', ''],
  ];

  test.each(refusals)(
    'without a key 401, with a key %i: %s',
    async (status, line, headers, body) => {
      const isGraphQL = /^\w+ \/graphql/.test(line);
      const [without] = await exchange(store, requestText(line, headers, body));
      expect([without?.status, JSON.parse(without?.text ?? '')]).toEqual([
        401,
        isGraphQL ? { errors } : error,
      ]);
      expect(without?.headers['www-authenticate']).toBe('Bearer');

      const [withKey] = await exchange(
        store,
        requestText(
          line,
          `${headers}Authorization: Bearer ${store.key}\r\n`,
          body,
        ),
      );
      const parsed = JSON.parse(withKey?.text ?? '');
      expect([
        withKey?.status,
        isGraphQL ? parsed.errors[0].extensions.status : parsed.status,
      ]).toEqual([status, status]);
    },
  );

  test.each([
    ...['/livez', '/readyz', '/v1/openapi.json', '/v1/openapi-3.0.json'],
    '/schema.graphql',
  ])('%s needs no key, and ignores a wrong one', async (path) => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }] as Array<
      Record<string, string>
    >) {
      expect(await send(store.origin, { path, headers })).toMatchObject({
        status: 200,
      });
      expect(
        await send(store.origin, { path, headers, method: 'HEAD' }),
      ).toMatchObject({ status: 200, text: '' });
    }
  });
}
