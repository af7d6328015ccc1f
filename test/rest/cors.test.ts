import { browserMethods } from '../support/contract.ts';
import { send } from '../support/http.ts';
import { describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';

/** Calls of browsers from other origins. */

const open = storeForAll({
  CORS_ORIGINS: 'https://shop.example, https://admin.example:8443',
});
const closed = storeForAll();

const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization, idempotency-key',
};
const exposed =
  'Link, X-Total-Count, Preference-Applied, ETag, Deprecation, Sunset, X-Request-Id, WWW-Authenticate, Allow, Retry-After, Idempotent-Replayed';

describe.each(['/v1/pets', '/graphql', '/v1/nothing'])('at %s', (path) => {
  test.each(['https://shop.example', 'https://admin.example:8443'])(
    '%s may call',
    async (origin) => {
      const response = await send(open.origin, {
        method: 'OPTIONS',
        path,
        headers: { origin, ...preflight },
      });
      expect(response).toMatchObject({ status: 204, text: '' });
      expect(response.headers).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': browserMethods(),
        'access-control-allow-headers': 'authorization, idempotency-key',
        'access-control-max-age': '600',
        vary: expect.stringContaining('Origin'),
      });
      expect(response.headers).not.toHaveProperty(
        'access-control-allow-credentials',
      );
      const headers = {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposed,
      };
      expect(
        await send(open.origin, { path, headers: { origin } }),
      ).toMatchObject({ status: 401, headers });
    },
  );

  test.each([
    'http://shop.example',
    'https://shop.example:444',
    'https://shop.example.evil',
    'https://evil-shop.example',
    'null',
  ])('%s may not', async (origin) => {
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await send(open.origin, {
        method,
        path,
        headers: { origin, ...preflight },
      });
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test('no origin may call when none is configured', async () => {
    const sent = { origin: 'https://shop.example', ...preflight };
    for (const method of ['OPTIONS', 'GET']) {
      const { status, headers } = await send(closed.origin, {
        method,
        path,
        headers: sent,
      });
      expect([
        status,
        Object.keys(headers).filter((name) =>
          name.startsWith('access-control-'),
        ),
      ]).toEqual([401, []]);
    }
  });

  test('an OPTIONS request that is no preflight needs a key', async () => {
    for (const headers of [
      {},
      { origin: 'https://shop.example' },
      preflight,
    ] as Array<Record<string, string>>) {
      expect(
        await send(open.origin, { method: 'OPTIONS', path, headers }),
      ).toMatchObject({ status: 401 });
    }
  });
});

test('the response to a request without an Origin varies by Origin, too', async () => {
  const headers = { authorization: `Bearer ${open.key}` };
  const response = await send(open.origin, { path: '/v1/pets', headers });
  expect(response).toMatchObject({
    status: 200,
    headers: { vary: 'Origin, accept-encoding' },
  });
});
