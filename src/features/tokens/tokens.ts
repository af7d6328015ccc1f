import { hash } from 'node:crypto';
import type { JWK, JWTVerifyResult } from 'jose';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { textIn } from '../../config/text-file.ts';
import { StoreError } from '../../errors.ts';
import { isRecord } from '../../validation/validator.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { Identities, Identity } from './identities.ts';
import { isSigned, subjectPrefix } from './secret.ts';

/** `scopes` are the provider's and ours: `pets:read=read,pets:write=write`. */
export type TokenOptions = NonNullable<Config['tokens']>;

/** By the codes of jose's errors. Others are about malformed tokens. */
const refusals: Record<string, string> = {
  ERR_JWKS_NO_MATCHING_KEY: 'unknown_key',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'signature',
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'claims',
};

/** Seconds by which the provider's clock may differ. */
const clockTolerance = 30;
/**
 * Asymmetric ones only: with HMAC the provider's public key would be the secret
 * (RFC 8725, section 2.1).
 */
const algorithms =
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(
    ' ',
  );
/**
 * RFC 9068, section 4, and `JWT` of providers that are older than it. Other
 * types are no access tokens.
 */
const types = /^(?:application\/)?(?:at\+)?jwt$/i;
/** The claim `typ` of Keycloak. */
const otherKinds: unknown[] = ['ID', 'Refresh', 'Offline', 'Logout'];
/**
 * How long (ms) a result is cached, and the provider is not asked again, for an
 * unknown key or after a failure.
 */
const pause = 10_000;
/**
 * How long (ms) until the keys of the provider are read again, and after a
 * failure; the known ones stay until then.
 */
const [refreshAfter, retryAfter] = [600_000, 60_000];
/** How long (ms) the provider may take. */
const patience = 3000;
/** The largest answer (bytes); a set of ten keys has about 10 KB. */
const maxBytes = 262_144;

/**
 * Accepts signed tokens (RFC 7519, RFC 9068) of an identity provider, which
 * need not be reachable yet.
 */
export async function acceptTokens(
  options: TokenOptions,
  log: Record<'warn', (fields: object, message: string) => void>,
): Promise<Identities & { readonly isUp: boolean }> {
  // Only a service with an issuer loads it.
  const { createRemoteJWKSet, customFetch, jwtVerify } = await import('jose');
  let isUp = true;
  const fail = (err: Error): never => {
    isUp = false;
    refreshes.set('', Promise.resolve(), { ttl: retryAfter });
    log.warn(
      { err },
      'the identity provider cannot be used: tokens with unknown keys get 503',
    );
    const message =
      'The identity provider does not answer, so this token cannot be verified; try again shortly.';
    throw new StoreError('SERVICE_UNAVAILABLE', message, {
      headers: { 'retry-after': `${pause / 1000}` },
      reason: 'provider',
    });
  };
  const readings = new LRUCache<'', Promise<JWK[]>>({
    max: 1,
    ttl: pause,
    memoMethod: async () => {
      const found = await providerKeys(options).catch(fail);
      isUp = true;
      return found;
    },
  });
  const keys = createRemoteJWKSet(new URL(options.issuer), {
    cooldownDuration: pause,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: async () => Response.json({ keys: await readings.memo('') }),
  });
  const refreshes = new LRUCache<'', Promise<void>>({
    max: 1,
    ttl: refreshAfter,
    memoMethod: () => keys.reload().catch(() => undefined),
  });
  const { issuer, audience } = options;
  const rules = {
    algorithms,
    issuer,
    audience,
    clockTolerance,
    requiredClaims: ['exp', 'sub'],
  };
  const results = new LRUCache<string, Promise<Identity | string>, string>({
    max: 20_000,
    ttl: pause,
    memoMethod: (_digest, _stale, { context: token }) =>
      jwtVerify(token, keys, rules).then(
        (verified) => subjectOf(verified, options),
        (error) => {
          if (error instanceof StoreError) throw error;
          const reason = refusals[error.code] ?? 'malformed';
          const isSigned = reason === 'expired' || reason === 'claims';
          if (isSigned) throw unacceptable(error.message, reason);
          return reason;
        },
      ),
  });
  return {
    matches: isSigned,
    // The result is cached, also a rejection.
    async verify(token, digest) {
      // A key that the provider has withdrawn is not accepted after a quiet
      // time, either. A provider that has failed is asked again while its known
      // keys serve.
      const refreshed = refreshes.memo('');
      if (isUp) await refreshed;
      return results.memo(digest, { context: token });
    },
    /** Whether the provider has answered the last question. */
    get isUp() {
      // Asks again where no token does.
      void refreshes.memo('');
      return isUp;
    },
  };
}

/** @throws StoreError UNAUTHENTICATED */
function subjectOf(
  { payload, protectedHeader }: JWTVerifyResult,
  { issuer, scopes }: TokenOptions,
): Identity {
  const { sub, exp } = payload;
  const { typ = 'JWT' } = protectedHeader;
  if (typeof typ !== 'string' || !types.test(typ))
    throw unacceptable('unexpected "typ" JWT header value');
  if (typeof sub !== 'string' || sub === '' || !Number.isFinite(exp))
    throw unacceptable('"sub" or "exp" claim is empty or has another type');
  // An ID or logout token is for its client, and one that is bound to a sender
  // (RFC 9449, RFC 8705) needs the sender's proof.
  const foreign = ['at_hash', 'c_hash', 'cnf', 'events'].find(
    (claim) => payload[claim] !== undefined,
  );
  if (foreign || otherKinds.includes(payload.typ))
    throw unacceptable(`unexpected "${foreign ?? 'typ'}" claim`);
  const namesOf = (scope: KeyScope) =>
    scopes
      .split(',')
      .flatMap((pair) =>
        pair.endsWith(`=${scope}`) ? pair.slice(0, -scope.length - 1) : [],
      );
  const [read, write] = [
    [...namesOf('read'), ...namesOf('write')],
    namesOf('write'),
  ];
  // A text in RFC 9068, a list in Okta's `scp`. Auth0's `permissions` are those
  // of the user, so they count only when the client has asked for no scope of
  // ours.
  const namesIn = (claim: unknown) =>
    (typeof claim === 'string' ? claim.split(' ') : [claim].flat()) as string[];
  const asked = [...namesIn(payload.scope), ...namesIn(payload.scp)];
  const granted = asked.some((name) => read.includes(name))
    ? asked
    : namesIn(payload.permissions);
  const isGranted = (name: string) => granted.includes(name);
  // As JSON, which keeps lone surrogates apart.
  const subject = hash('sha256', JSON.stringify([issuer, sub]), 'hex');
  const scope: KeyScope | undefined = write.some(isGranted)
    ? 'write'
    : read.some(isGranted)
      ? 'read'
      : undefined;
  return {
    hash: subject,
    issuer,
    caller: {
      hint: subjectPrefix + subject.slice(0, 8),
      scope,
      scopeNames: { read: read[0], write: write[0] },
    },
    validUntil: ((exp as number) + clockTolerance) * 1000,
  };
}

function unacceptable(fault: string, reason = 'claims'): StoreError {
  const headers = { 'www-authenticate': 'Bearer error="invalid_token"' };
  return new StoreError(
    'UNAUTHENTICATED',
    `The token is not valid: ${fault}.`,
    { headers, reason },
  );
}

/**
 * @returns the keys of an identity provider (RFC 7517, section 5) @throws Error
 *   that says what the provider did
 */
export async function providerKeys({
  issuer,
  jwksUrl,
}: TokenOptions): Promise<JWK[]> {
  const signal = AbortSignal.timeout(patience);
  const url = jwksUrl ?? (await discover(issuer, signal));
  const { keys } = (await readJson(url, signal)) ?? {};
  if (Array.isArray(keys)) {
    // RFC 7517, section 5: what is not understood is ignored.
    const usable = keys.filter(isRecord) as JWK[];
    if (usable.length > 0 || keys.length === 0) return usable;
  }
  throw new Error(`${url} has no set of keys`);
}

/**
 * OpenID Connect Discovery 1.0, section 4; else RFC 8414, section 3. @returns
 * the address of the keys
 */
async function discover(issuer: string, signal: AbortSignal): Promise<string> {
  const { protocol, origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const metadata =
    (await readJson(
      `${origin}${path}/.well-known/openid-configuration`,
      signal,
    )) ??
    (await readJson(
      `${origin}/.well-known/oauth-authorization-server${path}`,
      signal,
    ));
  if (metadata?.issuer !== issuer)
    throw new Error(
      `${issuer} calls itself ${JSON.stringify(metadata?.issuer)?.slice(0, 200)}`,
    );
  const keys = new URL(`${metadata.jwks_uri}`);
  if (keys.protocol !== 'https:' && keys.protocol !== protocol)
    throw new Error(`${issuer} has its keys at ${keys}`);
  return keys.href;
}

/** @returns undefined for a status that is not 200 */
async function readJson(
  url: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    const response = await fetch(url, { signal, redirect: 'error' });
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return response.status === 200
      ? JSON.parse(textIn(Buffer.concat(chunks)))
      : undefined;
  } catch (error) {
    const { message, cause = { message } } = error as Error & { cause?: Error };
    throw new Error(`${url} cannot be read: ${cause.message}`);
  }
}
