import { isRecord } from '@animal-store/exact-json';
import type { JWK } from 'jose';
import { decodedText } from '../../config/text-file.ts';
import { reasonOf } from '../../database/postgres-errors.ts';

/** An identity provider, and how its tokens are accepted. */
export interface Provider {
  issuer: string;
  /** What `aud` of a token must name. */
  audience: string;
  /** Where its keys are; by discovery when absent. */
  jwksUrl: string | undefined;
  /** The provider's and ours: `books:read=read,books:write=write`. */
  scopes: string;
  /** The claim with the tenant. */
  tenant: string | undefined;
}

/** The names of scopes that the provider and this service have. */
export function scopePairs(scopes: string) {
  return scopes.split(',').map((pair) => {
    const at = pair.lastIndexOf('=');
    return { theirs: pair.slice(0, at), ours: pair.slice(at + 1) };
  });
}

/** How long (ms) the provider may take. */
const patience = 3000;
/** The largest answer (bytes); a set of ten keys has about 10 KB. */
const largestAnswer = 262_144;

/**
 * @returns the keys of an identity provider (RFC 7517, section 5)
 * @throws Error that says what the provider did
 */
export async function providerKeys({ issuer, jwksUrl }: Provider) {
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
 * OpenID Connect Discovery 1.0, section 4; else RFC 8414, section 3.
 *
 * @returns the address of the keys
 */
async function discover(issuer: string, signal: AbortSignal) {
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
      if (bytes > largestAnswer)
        throw new Error(`more than ${largestAnswer} bytes`);
      chunks.push(chunk);
    }
    if (response.status !== 200) return undefined;
    return JSON.parse(decodedText(Buffer.concat(chunks)));
  } catch (error) {
    const { cause = error } = error as Error;
    throw new Error(`${url} cannot be read: ${reasonOf(cause)}`);
  }
}
