import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';
import { audience, providerForAll } from '../tokens/provider.ts';
import { post, type Target } from './mcp.ts';

/** Assistants that may log in at an identity provider. */

const store = storeForAll({ MCP: 'true' });

const provider = providerForAll();
const metadata = '/.well-known/oauth-protected-resource';
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const challenged = async (
  node: Target,
  headers: Record<string, string> = {},
) => {
  const { status, headers: answered } = await post(node, ping, headers);
  return [status, answered['www-authenticate']];
};

test('a client of /mcp is led to it (RFC 9728), by the address that the client uses', async () => {
  const scopes = 'pets:read=read,pets:write=write,pets:write=read';
  const env = {
    ...provider.env,
    MCP: 'true',
    TRUST_PROXY: '1',
    JWT_SCOPES: scopes,
  };
  await onNode(store, env, async (node) => {
    const about = {
      resource: audience,
      authorization_servers: [provider.issuer],
      scopes_supported: ['pets:read', 'pets:write'],
      bearer_methods_supported: ['header'],
    };
    for (const path of [metadata, `${metadata}/mcp`]) {
      const { status, headers, text } = await send(node.origin, { path });
      expect([status, headers['content-type'], JSON.parse(text)]).toEqual([
        200,
        'application/json; charset=utf-8',
        about,
      ]);
    }
    const address = `resource_metadata="${node.origin}${metadata}"`;
    expect(await challenged(node, { authorization: '' })).toEqual([
      401,
      `Bearer ${address}`,
    ]);
    const invalid = [401, `Bearer error="invalid_token", ${address}`];
    expect(await challenged(node, { authorization: 'Bearer wrong' })).toEqual(
      invalid,
    );
    const other = `Bearer ${provider.token({ aud: 'https://other.example' })}`;
    expect(await challenged(node, { authorization: other })).toEqual(invalid);
    const proxied = {
      'x-forwarded-for': '192.0.2.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'a.example',
      'x-forwarded-prefix': '/store',
    };
    expect(await challenged(node, { authorization: '', ...proxied })).toEqual([
      401,
      `Bearer resource_metadata="https://a.example/store${metadata}"`,
    ]);
    const noScope = `Bearer ${provider.token({ scope: 'openid' })}`;
    expect(await challenged(node, { authorization: noScope })).toEqual([
      403,
      `Bearer error="insufficient_scope", scope="pets:read", ${address}`,
    ]);
    expect(
      await challenged(node, { authorization: `Bearer ${provider.token()}` }),
    ).toEqual([200, undefined]);
    // REST has no such clients.
    const { headers } = await send(node.origin, { path: '/v1/pets' });
    expect(headers['www-authenticate']).toBe('Bearer');
  });
});

test('whose audience is no address, the resource is that of /mcp', async () => {
  const env = { ...provider.env, JWT_AUDIENCE: 'animal-store', MCP: 'true' };
  await onNode(store, env, async (node) => {
    const { text } = await send(node.origin, { path: metadata });
    expect(JSON.parse(text).resource).toBe(`${node.origin}/mcp`);
  });
});

test('and without assistants, or without one, no client is led anywhere', async () => {
  await onNode(store, provider.env, async (node) => {
    expect((await send(node.origin, { path: metadata })).status).toBe(401);
  });
  expect((await send(store.origin, { path: metadata })).status).toBe(401);
  expect(await challenged(store, { authorization: '' })).toEqual([
    401,
    'Bearer',
  ]);
});
