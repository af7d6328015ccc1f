import { generateKeyPairSync } from 'node:crypto';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';
import { callWith } from '../../support/wrong-keys.ts';
import {
  base64url,
  compact,
  newKey,
  providerForAll,
  type SigningKey,
  withSecret,
} from './provider.ts';

/** Tokens that must not be accepted, whatever they claim. */

const provider = providerForAll();
const store = storeForAll(provider.env);

const own = () => provider.keys[0] as SigningKey;
const header = (others: object = {}) =>
  JSON.stringify({ alg: 'ES256', kid: own().kid, typ: 'at+jwt', ...others });
/** Signed by the provider's key. */
const signed = (head: string, payload = provider.json()) =>
  compact(head, payload, own());
/** Signed by another key of the same kind. */
const forged = async (others: object = {}, payload = provider.json()) => {
  const key = await newKey('x');
  return compact(header(others), payload, key);
};
const pem = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
    type: 'spki',
    format: 'pem',
  });
const publicJwk = () => JSON.stringify(own().jwk);
const unsigned = (head: object) =>
  `${base64url(JSON.stringify(head))}.${base64url(provider.json())}.`;
const parts = () => provider.token().split('.') as [string, string, string];
const withExp = (exp: string) =>
  provider.json().replace(/"exp":\d+/, `"exp":${exp}`);

const unauthorized: Record<string, () => string | Promise<string>> = {
  // No signature.
  'alg none': () => unsigned({ alg: 'none' }),
  'alg None': () => unsigned({ alg: 'None' }),
  'alg NONE with the key id': () => unsigned({ alg: 'NONE', kid: own().kid }),
  'alg none with a signature': () =>
    compact(header({ alg: 'none' }), provider.json(), own()),
  'no alg': () => signed(header({ alg: undefined })),
  'alg null': () => signed(header({ alg: null })),
  'alg as a number': () => signed(header({ alg: 256 })),
  'alg as a list': () => signed(header({ alg: ['ES256'] })),
  'alg as an object': () => signed(header({ alg: { name: 'ES256' } })),
  'an empty alg': () => signed(header({ alg: '' })),
  'alg in lower case': () => signed(header({ alg: 'es256' })),
  'alg __proto__': () => signed(header({ alg: '__proto__' })),
  'an empty signature': () => parts().slice(0, 2).join('.').concat('.'),
  'two parts': () => parts().slice(0, 2).join('.'),
  'four parts': () => `${provider.token()}.${parts()[2]}`,
  // The public key as a secret.
  'HS256 with the public JWK': () =>
    withSecret(header({ alg: 'HS256' }), provider.json(), publicJwk()),
  'HS256 with the coordinate x': () =>
    withSecret(
      header({ alg: 'HS256' }),
      provider.json(),
      Buffer.from(`${own().jwk.x}`, 'base64url'),
    ),
  'HS256 with a PEM': () =>
    withSecret(header({ alg: 'HS256' }), provider.json(), `${pem()}`),
  'HS256 with an empty secret': () =>
    withSecret(header({ alg: 'HS256' }), provider.json(), ''),
  HS384: () =>
    withSecret(header({ alg: 'HS384' }), provider.json(), publicJwk()),
  HS512: () =>
    withSecret(header({ alg: 'HS512' }), provider.json(), publicJwk()),
  // Another algorithm than the key's.
  'RS256 named for a key of ES256': () => signed(header({ alg: 'RS256' })),
  'ES384 named for a key of ES256': () => signed(header({ alg: 'ES384' })),
  'EdDSA named for a key of ES256': () => signed(header({ alg: 'EdDSA' })),
  ES256K: () => signed(header({ alg: 'ES256K' })),
  'RSA1_5, which encrypts': () =>
    signed(header({ alg: 'RSA1_5', enc: 'A128GCM' })),
  // Keys that the token brings itself.
  'a key in jwk': async () => {
    const key = await newKey('x');
    return compact(header({ jwk: key.jwk }), provider.json(), key);
  },
  'a key in jwk without a kid': async () => {
    const key = await newKey('x');
    return compact(
      header({ jwk: key.jwk, kid: undefined }),
      provider.json(),
      key,
    );
  },
  'an address in jku': () => forged({ jku: `${provider.issuer}/evil` }),
  'an address in jku and an unknown kid': () =>
    forged({ jku: `${provider.issuer}/evil`, kid: 'evil' }),
  'an address in x5u': () => forged({ x5u: `${provider.issuer}/evil` }),
  'a file in jku': () => forged({ jku: 'file:///etc/passwd' }),
  'a certificate in x5c': () => forged({ x5c: ['MIIB'] }),
  'a thumbprint in x5t': () => forged({ x5t: 'AAAA' }),
  // Key ids.
  'a path in kid': () => forged({ kid: '../../../../dev/null' }),
  'an address in kid': () => forged({ kid: `${provider.issuer}/evil` }),
  'SQL in kid': () => forged({ kid: "' union select 'x' --" }),
  'a command in kid': () => forged({ kid: '$(id)' }),
  'NUL in kid': () => forged({ kid: 'first\u0000' }),
  'kid __proto__': () => forged({ kid: '__proto__' }),
  'kid as a number': () => forged({ kid: 0 }),
  'kid as a list': () => forged({ kid: [own().kid] }),
  'a kid of 8,000 characters': () => forged({ kid: 'x'.repeat(8000) }),
  'the kid of the provider, signed by another': () => forged(),
  // Signatures.
  'the signature of other claims': () =>
    [...provider.token({ sub: 'eve' }).split('.').slice(0, 2), parts()[2]].join(
      '.',
    ),
  'claims changed after signing': () =>
    [parts()[0], base64url(provider.json({ sub: 'root' })), parts()[2]].join(
      '.',
    ),
  'a signature of zeros (CVE-2022-21449)': () =>
    [...parts().slice(0, 2), base64url(Buffer.alloc(64))].join('.'),
  'half a signature': () => provider.token().slice(0, -43),
  'a signature that is too long': () => `${provider.token()}AAAA`,
  'a signature with padding': () => `${provider.token()}==`,
  // Headers.
  'crit with an unknown member': () =>
    signed(header({ crit: ['exp'], exp: 1 })),
  'an empty crit': () => signed(header({ crit: [] })),
  'b64 false (RFC 7797)': () => signed(header({ b64: false, crit: ['b64'] })),
  'a header that is a list': () => signed('[]'),
  'a header that is no JSON': () => signed('{"alg":"ES256"'),
  'alg twice, the last one none': () =>
    signed(header().replace('"kid"', '"alg":"none","kid"')),
  'typ of a logout': () => signed(header({ typ: 'logout+jwt' })),
  'typ of a security event': () => signed(header({ typ: 'secevent+jwt' })),
  'typ of a proof (DPoP)': () => signed(header({ typ: 'dpop+jwt' })),
  'typ of an encrypted token': () => signed(header({ typ: 'JWE' })),
  'typ as a list': () => signed(header({ typ: ['at+jwt'] })),
  'a token in a token': () => signed(header({ cty: 'JWT' }), provider.token()),
  'a token in a text': () =>
    signed(header({ cty: 'JWT' }), JSON.stringify(provider.token())),
  'five parts': () =>
    `${base64url('{"alg":"dir","enc":"A256GCM"}')}..AAAA.AAAA.AAAA`,
  // Claims.
  'claims that are a list': () => signed(header(), '[]'),
  'claims that are null': () => signed(header(), 'null'),
  'claims that are no JSON': () => signed(header(), '{'),
  'claims that are not UTF-8': () => {
    const input = `${base64url(header())}.${base64url(Buffer.from(provider.json().replace('ada', 'adé'), 'latin1'))}`;
    return `${input}.${parts()[2]}`;
  },
  'no issuer': () => provider.token({ iss: undefined }),
  'the issuer with a slash': () =>
    provider.token({ iss: `${provider.issuer}/` }),
  'the issuer in a list': () => provider.token({ iss: [provider.issuer] }),
  'no audience': () => provider.token({ aud: undefined }),
  'another audience': () => provider.token({ aud: 'https://other.example' }),
  'an audience that begins alike': () =>
    provider.token({ aud: 'https://animals.example.evil.example' }),
  'an empty list of audiences': () => provider.token({ aud: [] }),
  'an audience as an object': () =>
    provider.token({ aud: { 0: 'https://animals.example' } }),
  'no subject': () => provider.token({ sub: undefined }),
  'a subject that is a number': () => provider.token({ sub: 7 }),
  'a subject that is empty': () => provider.token({ sub: '' }),
  'a subject that is null': () => provider.token({ sub: null }),
  'no expiry': () => provider.token({ exp: undefined }),
  expired: () => provider.token({ exp: Math.floor(Date.now() / 1000) - 31 }),
  'expired at -1': () => provider.token({ exp: -1 }),
  'an expiry as a text': () => provider.token({ exp: '4000000000' }),
  'an expiry that is true': () => provider.token({ exp: true }),
  'an expiry of 1e400, which is infinite': () =>
    signed(header(), withExp('1e400')),
  'an expiry of -1e400': () => signed(header(), withExp('-1e400')),
  'an expiry of 1e-3': () => signed(header(), withExp('1e-3')),
  'exp twice, the last one in the past': () =>
    signed(header(), withExp('4000000000,"exp":1')),
  'an ID token by its at_hash': () => provider.token({ at_hash: 'AAAA' }),
  'an ID token by its c_hash': () => provider.token({ c_hash: 'AAAA' }),
  'an ID token of Keycloak': () => provider.token({ typ: 'ID' }),
  'a refresh token of Keycloak': () => provider.token({ typ: 'Refresh' }),
  'a logout token': () =>
    provider.token({
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    }),
  'a token that needs a proof (DPoP)': () =>
    provider.token({ cnf: { jkt: 'AAAA' } }),
  'not yet valid': () =>
    provider.token({ nbf: Math.floor(Date.now() / 1000) + 60 }),
  'nbf as a text': () => provider.token({ nbf: '0' }),
  'aud twice, the last one another': () =>
    signed(header(), provider.json().replace('"sub"', '"aud":"x","sub"')),
  // Texts.
  'dots alone': () => '..',
  'empty claims': () => signed(header(), ''),
  'JSON in the place of base64': () => 'a.b.c',
  'more than 8,192 characters': () =>
    provider.token({ more: 'x'.repeat(5900) }),
  '12,000 characters': () =>
    signed(header(), provider.json({ aud: 'x', more: 'x'.repeat(8500) })),
};

test.each(Object.entries(unauthorized))('401: %s', async (_what, make) => {
  const { status, headers, text } = await callWith(store, await make());
  expect([status, headers['www-authenticate']]).toEqual([
    401,
    'Bearer error="invalid_token"',
  ]);
  const { code, message } = JSON.parse(text);
  expect([code, message]).toEqual([
    'UNAUTHENTICATED',
    expect.stringMatching(/^The (?:token|API key) is not valid/),
  ]);
});

const unscoped: Record<string, unknown> = {
  'another case': 'Pets:Read PETS:WRITE',
  'letters that look alike': 'pets:re\u0430d',
  'full-width letters': '\uff50ets:read',
  'a space that does not break': 'openid\u00a0pets:read',
  'a line feed': 'openid\npets:read',
  'a tab': 'openid\tpets:read',
  'a zero-width space': 'pets:read\u200b',
  NUL: 'pets:read\u0000',
  commas: 'pets:read,pets:write',
  'the names of our own scopes': 'read write',
  'a prefix': 'pets pets: pets:rea',
  'a star': '* pets:*',
  __proto__: '__proto__ constructor toString',
  'a list in a list': [['pets:read']],
  'an object': { 'pets:read': true },
  'an object that has no text': { toString: 1, valueOf: 1 },
  'a list of objects that have no text': [{ toString: 1, valueOf: 1 }],
  'a mapping': 'pets:read=read',
};

test.each(Object.entries(unscoped))(
  '403: a scope with %s',
  async (_what, scope) => {
    const { status, text } = await callWith(store, provider.token({ scope }));
    expect([status, JSON.parse(text).code]).toEqual([403, 'FORBIDDEN']);
  },
);

test('a token beyond the limit of headers is 431', async () => {
  const token = signed(header(), provider.json({ more: 'x'.repeat(20_000) }));
  expect((await callWith(store, token)).status).toBe(431);
});

test.each([
  [
    'in the query (RFC 6750, section 2.3)',
    (token: string) => ({ path: `/v1/pets?access_token=${token}` }),
  ],
  [
    'in a cookie',
    (token: string) => ({
      path: '/v1/pets',
      headers: { cookie: `access_token=${token}` },
    }),
  ],
  [
    'of another scheme',
    (token: string) => ({
      path: '/v1/pets',
      headers: { authorization: `JWT ${token}` },
    }),
  ],
  [
    'as DPoP',
    (token: string) => ({
      path: '/v1/pets',
      headers: { authorization: `DPoP ${token}` },
    }),
  ],
])('a valid token %s is no token', async (_where, request) => {
  expect((await send(store.origin, request(provider.token()))).status).toBe(
    401,
  );
});

test('nothing but the keys is asked of the provider, and not once per token', async () => {
  for (let user = 0; user < 20; user += 1)
    await callWith(store, provider.token({ sub: `${user}` }));
  expect(new Set(provider.asked)).toEqual(
    new Set(['/.well-known/openid-configuration', '/jwks']),
  );
  expect(provider.asked.length).toBeLessThan(10);
});
