import { stock } from '../../support/database-access.ts';
import { send } from '../../support/http.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { onNode } from '../../support/nodes.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({}, async () => {
  await stock(store.database, 3);
});

const authorized = () => ({ authorization: `Bearer ${store.key}` });
const json = { 'content-type': 'application/json' };

describe('CORS', () => {
  const preflight = (origin: string) => ({
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  });

  test.each(['https://shop.example', 'null', 'http://127.0.0.1', 'https://studio.apollographql.com'])(
    'is closed to %s by default',
    async (origin) => {
      for (const path of ['/v1/pets', '/graphql']) {
        const asked = await send(store.origin, { method: 'OPTIONS', path, headers: preflight(origin) });
        const answered = await send(store.origin, { path: '/v1/pets', headers: { ...authorized(), origin } });
        for (const { headers } of [asked, answered]) {
          expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
        }
      }
    },
  );

  test('is open to configured origins, and to no other that looks like one', async () => {
    await onNode(store, { CORS_ORIGINS: 'https://shop.example' }, async (node) => {
      const path = '/graphql';
      const { status, headers } = await send(node.origin, {
        method: 'OPTIONS',
        path,
        headers: preflight('https://shop.example'),
      });
      expect(status).toBe(204);
      expect(headers['access-control-allow-origin']).toBe('https://shop.example');
      expect(headers).not.toHaveProperty('access-control-allow-credentials');
      for (const origin of [
        'https://shop.example.evil.example',
        'https://evil-shop.example',
        'http://shop.example',
        'https://shop.example:444',
        'null',
      ]) {
        const other = await send(node.origin, { method: 'OPTIONS', path, headers: preflight(origin) });
        expect(other.headers['access-control-allow-origin']).toBeUndefined();
      }
      const exposed = await send(node.origin, {
        path: '/v1/pets',
        headers: { ...authorized(), origin: 'https://shop.example' },
      });
      expect(exposed.headers['access-control-expose-headers']).toMatch(/RateLimit, ?RateLimit-Policy/);
    });
  });
});

describe('the Link of the next page', () => {
  const link = async (headers: Record<string, string>, origin = store.origin) =>
    (await send(origin, { path: '/v1/pets?limit=1', headers: { ...authorized(), ...headers } })).headers.link;
  const forged = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-prefix': '/evil',
    'x-forwarded-server': 'evil.example',
    'x-original-url': '/evil',
    'x-rewrite-url': '/evil',
    'x-host': 'evil.example',
    forwarded: 'host=evil.example;proto=https',
  };

  test.each(Object.entries(forged))('believes %s: %s of nobody, without TRUST_PROXY', async (name, value) => {
    expect(await link({ [name]: value, host: 'store.example' })).toBe(
      '<http://store.example/v1/pets?limit=1&after=1>; rel="next"',
    );
  });

  test('believes no prefix of a client that comes past the trusted proxy', async () => {
    await onNode(store, { TRUST_PROXY: '192.0.2.1' }, async ({ origin }) => {
      expect(await link({ 'x-forwarded-prefix': '/evil', host: 'store.example' }, origin)).toBe(
        '<http://store.example/v1/pets?limit=1&after=1>; rel="next"',
      );
    });
  });

  test('believes them of a trusted proxy, and nothing that would break out', async () => {
    await onNode(store, { TRUST_PROXY: '127.0.0.1' }, async (node) => {
      const { origin } = node;
      expect(await link({ 'x-forwarded-host': 'shop.example', 'x-forwarded-proto': 'https' }, origin)).toBe(
        '<https://shop.example/v1/pets?limit=1&after=1>; rel="next"',
      );
      for (const host of ['evil.example>', 'a"b', 'a/b', 'a@b', 'a b', 'a?b', 'javascript:alert(1)']) {
        expect(await link({ 'x-forwarded-host': host }, origin)).toMatch(
          /^<https?:\/\/[\w.:-]+\/v1\/pets\?limit=1&after=1>; rel="next"$/,
        );
      }
      for (const proto of ['javascript', 'https://evil.example/', 'a>b']) {
        expect(await link({ 'x-forwarded-proto': proto }, origin)).toMatch(
          /^<https?:\/\/[\w.:-]+\/v1\/pets\?limit=1&after=1>; rel="next"$/,
        );
      }
    });
  });

  // RFC 7239's Forwarded is passed on by most proxies as the client wrote it.
  test.each([
    [{ 'x-forwarded-host': 'shop.example', 'x-forwarded-proto': 'https' }, 'https://shop.example'],
    [{ 'x-forwarded-for': '192.0.2.1' }, 'http://store.example'],
    [{}, 'http://store.example'],
  ])('is made of what the proxy wrote (%j), whatever Forwarded says', async (written, expected) => {
    for (const TRUST_PROXY of ['1', '127.0.0.1']) {
      await onNode(store, { TRUST_PROXY }, async ({ origin }) => {
        for (const forwarded of ['host=evil.example;proto=https', 'for=192.0.2.1;host=evil.example', '"', '']) {
          expect(await link({ host: 'store.example', ...written, forwarded }, origin)).toBe(
            `<${expected}/v1/pets?limit=1&after=1>; rel="next"`,
          );
        }
      });
    }
  });

  test.each([
    'evil.example/path',
    'evil.example?x',
    'a b',
    '<script>',
    'user@evil.example',
    'a,b',
    '999.1.1.1',
    '[::::]',
    '127.0.0.1:99999',
  ])('is not made of the Host %s, which is refused by both faces', async (host) => {
    for (const request of [
      { path: '/v1/pets?limit=1', headers: { ...authorized(), host } },
      {
        method: 'POST',
        path: '/graphql',
        headers: { ...authorized(), ...json, host },
        body: '{"query":"{__typename}"}',
      },
    ]) {
      const { status, headers } = await send(store.origin, request);
      expect(status).toBe(400);
      expect(headers.link).toBeUndefined();
    }
  });
});
