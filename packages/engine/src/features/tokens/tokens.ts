import { hash } from 'node:crypto';
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Identities, Identity } from '../../access/keys/identities.ts';
import { subjectPrefix } from '../../access/keys/secret.ts';
import { isText } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import { type Provider, providerKeys, scopePairs } from './provider.ts';

/** By the codes of jose's errors. Others are about malformed tokens. */
const refusals: Record<string, string> = {
  ERR_JWKS_NO_MATCHING_KEY: 'unknown_key',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'signature',
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'claims',
};

/**
 * Header, claims, signature (RFC 7515, section 7.1). At most 8,192 characters,
 * because reading more takes long.
 */
const signed = /^(?=.{1,8192}$)[\w-]+\.[\w-]+\.[\w-]+$/;
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
const tokenTypes = /^(?:application\/)?(?:at\+)?jwt$/i;
/** The claim `typ` of Keycloak. */
const otherKinds: unknown[] = ['ID', 'Refresh', 'Offline', 'Logout'];
/**
 * How long (ms) a result is cached, and the provider is not asked again for an
 * unknown key.
 */
const pause = 10_000;
/** How long (ms) until the keys of the provider are read again. */
const refreshInterval = 600_000;
/** The same after a failure; the known keys go on to serve. */
const retryInterval = 60_000;

/** The keys of a provider, which need not be reachable yet. */
class ProviderKeys {
  /** False after a question that the provider has not answered. */
  hasAnswered = true;
  #known = createLocalJWKSet({ keys: [] });
  #askedAt = Number.NEGATIVE_INFINITY;
  #reading = Promise.resolve();

  constructor(
    private readonly provider: Provider,
    private readonly log: Logger,
  ) {}

  /**
   * The key of a token. One that is not known may be new.
   *
   * @throws StoreError SERVICE_UNAVAILABLE; JOSEError without such a key
   */
  readonly find: JWTVerifyGetKey<CryptoKey> = async (...token) => {
    try {
      return await this.#known(...token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    await this.#read(pause);
    return this.#known(...token);
  };

  /**
   * Reads them when it is time. After a failure the known ones serve, and no
   * token waits for the next answer.
   */
  async refresh() {
    const interval = this.hasAnswered ? refreshInterval : retryInterval;
    const reading = this.#read(interval).catch(() => undefined);
    if (this.hasAnswered) await reading;
  }

  /** Reads them, unless the provider was asked in the last `interval` (ms). */
  #read(interval: number) {
    const now = performance.now();
    if (now - this.#askedAt >= interval) {
      this.#askedAt = now;
      this.#reading = this.#ask();
    }
    return this.#reading;
  }

  async #ask() {
    try {
      const keys = await providerKeys(this.provider);
      this.#known = createLocalJWKSet({ keys });
      this.hasAnswered = true;
    } catch (err) {
      this.hasAnswered = false;
      this.log.warn({ err }, unusable);
      throw new StoreError('SERVICE_UNAVAILABLE', silent, {
        headers: { 'retry-after': `${pause / 1000}` },
        reason: 'provider',
      });
    }
  }
}

const unusable =
  'the identity provider cannot be used: tokens with unknown keys get 503';
const silent =
  'The identity provider does not answer, so this token cannot be verified; try again shortly.';

/** Accepts signed tokens (RFC 7519, RFC 9068) of an identity provider. */
export function acceptTokens(
  provider: Provider,
  log: Logger,
): Identities & { readonly isUp: boolean } {
  const keys = new ProviderKeys(provider, log);
  const { issuer, audience } = provider;
  const rules = {
    algorithms,
    issuer,
    audience,
    clockTolerance,
    requiredClaims: ['exp', 'sub'],
  };
  const judge = async (token: string): Promise<Identity | string> => {
    try {
      return subjectOf(await jwtVerify(token, keys.find, rules), provider);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      const { code, message } = error as errors.JOSEError;
      const reason = refusals[code] ?? 'malformed';
      const isAuthentic = reason === 'expired' || reason === 'claims';
      if (isAuthentic) throw unacceptable(message, reason);
      return reason;
    }
  };
  const results = new LRUCache<string, Promise<Identity | string>, string>({
    max: 20_000,
    ttl: pause,
    memoMethod: (_digest, _stale, { context: token }) => judge(token),
  });
  return {
    matches: (text) => signed.test(text),
    // The result is cached, also a rejection.
    async verify(token, digest) {
      // A key that the provider has withdrawn is not accepted after a quiet
      // time, either.
      await keys.refresh();
      return results.memo(digest, { context: token });
    },
    get isUp() {
      // Asks again where no token does.
      void keys.refresh();
      return keys.hasAnswered;
    },
  };
}

/** @throws StoreError UNAUTHENTICATED */
function subjectOf(
  { payload, protectedHeader }: JWTVerifyResult,
  { issuer, scopes, tenant }: Provider,
): Identity {
  const { sub, exp } = payload;
  const { typ = 'JWT' } = protectedHeader;
  if (typeof typ !== 'string' || !tokenTypes.test(typ))
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
  const pairs = scopePairs(scopes);
  const namedIn = (...claims: unknown[]) => {
    const names = claims.flatMap(scopesIn);
    return pairs.filter(({ theirs }) => names.includes(theirs));
  };
  let granted = namedIn(payload.scope, payload.scp);
  // Auth0's `permissions` are those of the user, so they count only when the
  // client has asked for no scope of ours.
  if (granted.length === 0) granted = namedIn(payload.permissions);
  const validFor = ((exp as number) + clockTolerance) * 1000 - Date.now();
  // As JSON, which keeps lone surrogates apart.
  const subject = hash('sha256', JSON.stringify([issuer, sub]), 'hex');
  return {
    hash: subject,
    issuer,
    caller: {
      hint: subjectPrefix + subject.slice(0, 8),
      subject: sub,
      tenant: textOfClaim(payload, tenant),
      scopes: [...new Set(granted.map(({ ours }) => ours))],
      scopeNames: Object.fromEntries(
        pairs.map(({ theirs, ours }) => [ours, theirs]).reverse(),
      ),
    },
    validUntil: performance.now() + validFor,
  };
}

/** A text in RFC 9068, a list in Okta's `scp`. */
function scopesIn(claim: unknown) {
  return typeof claim === 'string' ? claim.split(' ') : claim;
}

function unacceptable(fault: string, reason = 'claims') {
  const headers = { 'www-authenticate': 'Bearer error="invalid_token"' };
  return new StoreError(
    'UNAUTHENTICATED',
    `The token is not valid: ${fault}.`,
    { headers, reason },
  );
}

function textOfClaim(payload: JWTPayload, claim: string | undefined) {
  const value = claim && payload[claim];
  const isClaimed = typeof value === 'string' && value !== '';
  return isClaimed && isText(value) ? value : undefined;
}
