import { afterAll, beforeAll, expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { onNode, storeForAll } from '../../../support/store.ts';
import { callWith, withClock } from '../../../support/wrong-keys.ts';
import { type Oidc, startOidc } from './oidc-provider.ts';

/**
 * Tokens of a real provider. A person's login is in
 * test/deep/browser/react-login.test.ts.
 */

let oidc: Oidc;
beforeAll(async () => {
  oidc = await startOidc();
});
afterAll(() => oidc.close());
const store = storeForAll();

test('a program logs in with its client credentials, and is one caller with each of its tokens', () =>
  onNode(store, oidc.env, async (node) => {
    const create = async (name: string) => {
      const headers = { 'idempotency-key': 'once' };
      const json = { name, categoryId: 1 };
      return rest(node, '/v1/pets', {
        method: 'POST',
        json,
        key: await oidc.token(),
        headers,
      });
    };
    const [first, second] = [await create('Rex'), await create('Rex')];
    expect([
      first.status,
      second.status,
      second.headers['idempotent-replayed'],
    ]).toEqual([201, 201, 'true']);
    expect(second.json).toEqual(first.json);
    const reader = await oidc.token('pets:read');
    expect((await callWith(node, reader)).status).toBe(200);
    const refused = await rest(node, '/v1/pets', {
      method: 'POST',
      json: { name: 'a', categoryId: 1 },
      key: reader,
    });
    expect([refused.status, refused.json.message]).toEqual([
      403,
      'This needs a token with the scope "pets:write".',
    ]);
  }));

test('a new key of the provider is accepted beside the old one, and the old one no longer once it is removed', () =>
  onNode(store, oidc.env, (node) =>
    withClock(async (setTo) => {
      const statusOf = async (token: string) =>
        (await callWith(node, token)).status;
      const old = await oidc.token();
      expect(await statusOf(old)).toBe(200);
      await oidc.rotate(true);
      setTo(11_000);
      expect(await statusOf(await oidc.token())).toBe(200);
      expect(await statusOf(old)).toBe(200);
      await oidc.rotate(false);
      setTo(22_000);
      expect(await statusOf(await oidc.token())).toBe(200);
      expect(await statusOf(old)).toBe(401);
    }),
  ));

test('an expired token and an opaque one are refused', () =>
  onNode(store, oidc.env, async (node) => {
    oidc.behind = 91;
    const { json } = await rest(node, '/v1/pets', { key: await oidc.token() });
    oidc.behind = 0;
    expect(json.message).toBe(
      'The token is not valid: "exp" claim timestamp check failed.',
    );
    expect((await callWith(node, 'YW4gb3BhcXVlIHRva2Vu')).status).toBe(401);
  }));
