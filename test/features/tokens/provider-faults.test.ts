import type { ServerResponse } from 'node:http';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { onNode, type ServiceNode, storeForAll } from '../../support/store.ts';
import { callWith, withClock } from '../../support/wrong-keys.ts';
import { newKey, type Provider, providerForAll } from './provider.ts';

/**
 * An identity provider that fails, or changes its keys. A node asks it again
 * after ten seconds.
 */

const provider = providerForAll();
const store = storeForAll();
const onTokens = (work: (node: ServiceNode) => Promise<void>, env = {}) =>
  onNode(store, { ...provider.env, ...env }, work);

const statusOf = async (node: ServiceNode, token: string) =>
  (await callWith(node, token)).status;
let jti = 0;
/** A token that no node has seen. */
const fresh = (key?: Provider['keys'][0]) => {
  jti += 1;
  return provider.token({ jti: `${jti}` }, {}, key);
};

const readiness = async ({ origin }: ServiceNode) =>
  JSON.parse((await send(origin, { path: '/readyz' })).text);

const unavailable = {
  code: 'SERVICE_UNAVAILABLE',
  status: 503,
  message:
    'The identity provider does not answer, so this token cannot be verified; try again shortly.',
};

const faults: Record<
  string,
  (response: ServerResponse, path: string) => unknown
> = {
  'answers 500': (response) => response.writeHead(500).end('{}'),
  'answers 204': (response) => response.writeHead(204).end(),
  'answers HTML': (response) =>
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<html>Maintenance</html>'),
  'answers nothing': (response) => response.end(),
  'leads elsewhere': (response) =>
    response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  'leads to keys elsewhere': (response, path) => {
    const keys = provider.keys.map(({ jwk }) => jwk);
    if (path === '/moved') return response.end(JSON.stringify({ keys }));
    const location = `${provider.issuer}/moved`;
    return path === '/jwks'
      ? response.writeHead(302, { location }).end()
      : undefined;
  },
  'closes the connection': (response) => response.destroy(),
  'breaks off': (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('{');
    return setImmediate(() => response.destroy());
  },
  'answers 50 MB': (response) => response.end(Buffer.alloc(50_000_000, ' ')),
  'has another name': (response) =>
    response.end(
      JSON.stringify({ issuer: 'https://other.example', jwks_uri: 'x' }),
    ),
  'has no address of keys': (response) =>
    response.end(JSON.stringify({ issuer: provider.issuer })),
  'has keys in a file': (response) =>
    response.end(
      JSON.stringify({
        issuer: provider.issuer,
        jwks_uri: 'file:///etc/passwd',
      }),
    ),
  'has its keys in the address': (response) =>
    response.end(
      JSON.stringify({
        issuer: provider.issuer,
        jwks_uri: 'data:application/json,{"keys":[]}',
      }),
    ),
  'answers null': (response) => response.end('null'),
  'has no set of keys': (response, path) =>
    path === '/jwks' ? response.end('{"keys":{}}') : undefined,
};

test.each(Object.entries(faults))(
  'a provider that %s: 503, asked once for all tokens; keys and known tokens go on; then 200',
  (_what, instead) =>
    onTokens((node) =>
      withClock(async (setTo) => {
        const known = fresh();
        expect(await statusOf(node, known)).toBe(200);
        const later = await provider.addKey(`later ${jti}`);
        setTo(11_000);
        provider.instead = instead;
        try {
          const { asked } = provider;
          const before = asked.length;
          for (let time = 0; time < 5; time += 1) {
            const { status, headers, json } = await rest(node, '/v1/pets', {
              key: fresh(later),
            });
            expect([status, headers['retry-after'], json]).toEqual([
              503,
              '10',
              unavailable,
            ]);
          }
          expect(asked.length - before).toBeLessThanOrEqual(3);
          expect(await readiness(node)).toEqual({
            status: 'ok',
            provider: 'cannot be used',
          });
          expect(await statusOf(node, known)).toBe(200);
          expect(await statusOf(node, fresh())).toBe(200);
          expect(await statusOf(node, store.key)).toBe(200);
        } finally {
          provider.instead = undefined;
        }
        setTo(22_000);
        expect(await statusOf(node, fresh(later))).toBe(200);
        expect(await readiness(node)).toEqual({ status: 'ok' });
        provider.keys.pop();
      }),
    ),
);

const keySets: Record<string, (keys: string) => string | Buffer> = {
  'null among its keys': (keys) => `{"keys":[null,7,"x",[],${keys}]}`,
  'keys that nobody knows': (keys) =>
    `{"keys":[{"kty":"new"},{},{"kty":"EC","crv":"P-999"},${keys}]}`,
  'a mark': (keys) => `\ufeff{"keys":[${keys}]}`,
  'a mark in UTF-16': (keys) =>
    Buffer.from(`\ufeff{"keys":[${keys}]}`, 'utf16le'),
};

test.each(Object.entries(keySets))(
  'a provider with %s in its answer is understood',
  async (_what, answer) => {
    const keys = provider.keys.map(({ jwk }) => JSON.stringify(jwk)).join();
    provider.instead = (response, path) =>
      path === '/jwks' ? response.end(answer(keys)) : undefined;
    await onTokens(async (node) =>
      expect(await statusOf(node, fresh())).toBe(200),
    ).finally(() => {
      provider.instead = undefined;
    });
  },
);

test('a provider that was never reached is 503, through each API, and the service starts without it', () =>
  onTokens(
    async (node) => {
      expect((await rest(node, '/v1/pets', { key: fresh() })).json).toEqual(
        unavailable,
      );
      expect(await statusOf(node, store.key)).toBe(200);
    },
    { JWT_JWKS_URL: 'http://127.0.0.1:1/jwks' },
  ));

describe('keys', () => {
  test('are read from JWT_JWKS_URL without discovery, or from the metadata of RFC 8414', async () => {
    provider.asked = [];
    await onTokens(
      async (node) => expect(await statusOf(node, fresh())).toBe(200),
      {
        JWT_JWKS_URL: `${provider.issuer}/jwks`,
      },
    );
    expect(provider.asked).toEqual(['/jwks']);
    const issuer = `${provider.issuer}/realms/shop`;
    provider.instead = (response, path) =>
      path === '/.well-known/oauth-authorization-server/realms/shop'
        ? response.end(
            JSON.stringify({ issuer, jwks_uri: `${provider.issuer}/jwks` }),
          )
        : undefined;
    await onTokens(
      async (node) =>
        expect(await statusOf(node, provider.token({ iss: issuer }))).toBe(200),
      {
        JWT_ISSUER: issuer,
      },
    );
    provider.instead = undefined;
  });

  test('that are new are found at the first token, ten seconds after the last question; unknown ones cost no question each', () =>
    onTokens((node) =>
      withClock(async (setTo) => {
        expect(await statusOf(node, fresh())).toBe(200);
        const second = await provider.addKey('second', 'RS256');
        const stranger = await newKey('stranger');
        setTo(11_000);
        provider.asked = [];
        expect(await statusOf(node, fresh(second))).toBe(200);
        for (let time = 0; time < 20; time += 1) {
          expect(
            await statusOf(
              node,
              provider.token(
                { jti: `${jti} ${time}` },
                { kid: `${time}` },
                stranger,
              ),
            ),
          ).toBe(401);
        }
        expect(provider.asked.length).toBe(2);
      }),
    ));

  test('that are known serve while the provider does not answer', () =>
    onTokens((node) =>
      withClock(async (setTo) => {
        expect(await statusOf(node, fresh())).toBe(200);
        provider.instead = (response) => response.writeHead(500).end();
        setTo(601_000);
        expect(await statusOf(node, fresh())).toBe(200);
        const hanging: ServerResponse[] = [];
        provider.instead = (response) => hanging.push(response);
        setTo(662_000);
        expect(await statusOf(node, fresh())).toBe(200);
        // It was asked, and still is when the request has been answered.
        await eventually(async () => hanging.length === 1);
        expect(hanging[0]?.writableFinished).toBe(false);
        provider.instead = undefined;
        for (const response of hanging) response.destroy();
      }),
    ));

  test('that are removed are refused after ten minutes', () =>
    onTokens((node) =>
      withClock(async (setTo) => {
        const removed = await provider.addKey('removed');
        const token = provider.token(
          { exp: Date.now() / 1000 + 3600 },
          {},
          removed,
        );
        expect(await statusOf(node, token)).toBe(200);
        provider.keys.pop();
        setTo(590_000);
        expect(await statusOf(node, token)).toBe(200);
        // The first request after ten minutes has them read again. A provider
        // that fails then changes nothing, and is asked again a minute later.
        setTo(601_000);
        provider.instead = (response) => response.writeHead(500).end();
        expect(await statusOf(node, token)).toBe(200);
        setTo(650_000);
        provider.instead = undefined;
        expect(await statusOf(node, token)).toBe(200);
        // This request begins to read them, and does not wait.
        setTo(662_000);
        expect(await statusOf(node, token)).toBe(200);
        setTo(673_000);
        expect([
          await statusOf(node, token),
          await statusOf(node, fresh()),
        ]).toEqual([401, 200]);
      }),
    ));
});
