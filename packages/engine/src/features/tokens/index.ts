import { kind, text, type ValuesOf } from '../../config/variables.ts';
import { feature } from '../../feature.ts';
import type { Provider } from './provider.ts';

const httpUrl = kind('https:// or http:// address', (given) => {
  const url = URL.parse(given);
  if (url && isPlainHttp(url)) return given;
  throw new Error(
    'must be an https:// or http:// address without a query and a password',
  );
});

function isPlainHttp({ protocol, search, hash, username, password }: URL) {
  const hasMore = [search, hash, username, password].some(Boolean);
  return /^https?:$/.test(protocol) && !hasMore;
}

/** A name of the provider (RFC 6749, appendix A.4), and a scope of ours. */
const scopeName =
  /^[\x21\x23-\x5b\x5d-\x7e]+=(?:[a-z][\w-]*:)?(?:read|write|all)$/;
const scopeNames = kind('list of `theirs=ours`', (given) => {
  if (given.split(',').every((one) => scopeName.test(one))) return given;
  throw new Error(
    `must be names with read, write or all, or one of a module, like THEIRS=read,THEIRS=MODULE:write, not "${given}"`,
  );
});

const variables = {
  JWT_ISSUER: httpUrl(
    undefined,
    'Identity provider whose tokens are accepted, as in their `iss` (frontends.md).',
    'JWT_AUDIENCE',
  ),
  JWT_AUDIENCE: text(
    undefined,
    'What `aud` of a token must name; needed with `JWT_ISSUER` (frontends.md).',
    'JWT_ISSUER',
  ),
  JWT_JWKS_URL: httpUrl(
    undefined,
    'Keys of the provider; without it, by discovery (frontends.md).',
    'JWT_ISSUER',
  ),
  JWT_SCOPES: scopeNames(
    'read=read,write=write',
    'What scopes of the provider permit here. A name may repeat (frontends.md).',
  ),
  JWT_TENANT: text(
    undefined,
    'Claim of a token that names the tenant of its user (frontends.md).',
    'JWT_ISSUER',
  ),
};

function providerOf(values: ValuesOf<typeof variables>): Provider | undefined {
  const { JWT_ISSUER: issuer, JWT_AUDIENCE: audience } = values;
  if (!issuer || !audience) return undefined;
  return {
    issuer,
    audience,
    jwksUrl: values.JWT_JWKS_URL,
    scopes: values.JWT_SCOPES,
    tenant: values.JWT_TENANT,
  };
}

/** Accepts signed tokens of an identity provider beside keys. */
export const tokens = feature({
  name: 'tokens',
  variables,
  namesTenants: ({ values }) => values.JWT_TENANT !== undefined,
  checks({ values }) {
    const provider = providerOf(values);
    if (!provider) return [];
    const remedy =
      'start the provider, or correct JWT_ISSUER and JWT_JWKS_URL; until then its tokens get 503';
    const run = async () => {
      const { providerKeys } = await import('./provider.ts');
      const keys = await providerKeys(provider);
      if (keys.length === 0) throw new Error('The provider has no keys.');
      const kinds = keys.map(({ kty, crv }) => crv ?? kty);
      return `${provider.issuer} signs with ${kinds.join(', ')}`;
    };
    return [{ name: 'tokens', remedy, state: 'warning', run }];
  },
  async start({ values, log }) {
    const provider = providerOf(values);
    if (!provider) return undefined;
    const [{ acceptTokens }, { assertScopesExist, leadToLogin }] =
      await Promise.all([import('./tokens.ts'), import('./login.ts')]);
    const identities = acceptTokens(provider, log);
    return {
      identities,
      dependencies: { provider: identities },
      http(app) {
        assertScopesExist(app, provider);
        leadToLogin(app, provider);
      },
    };
  },
});
