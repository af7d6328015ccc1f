import { createHmac, KeyObject, sign } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { afterAll, beforeAll } from '../../support/jest.ts';

/** A key of a provider, with the private half. */
export interface SigningKey {
  kid: string;
  alg: string;
  jwk: JWK;
  private: KeyObject;
}

export const audience = 'https://animals.example';

/**
 * An identity provider that signs what a test asks for. For what real ones do,
 * see test/deep/keys.
 */
export class Provider {
  readonly keys: SigningKey[] = [];
  /** The requests so far. */
  asked: string[] = [];
  /** Answers instead of the provider. */
  instead: ((response: ServerResponse, path: string) => unknown) | undefined;
  issuer = '';
  /** The service's variables, from `open` on. */
  readonly env: Record<string, string> = {};
  readonly #server = createServer(({ url = '' }, response) => {
    this.asked.push(url);
    if (this.instead?.(response, url) !== undefined) return;
    const answers: Record<string, object> = {
      '/.well-known/openid-configuration': {
        issuer: this.issuer,
        jwks_uri: `${this.issuer}/jwks`,
      },
      '/jwks': { keys: this.keys.map(({ jwk }) => jwk) },
    };
    const answer = answers[url];
    response
      .writeHead(answer ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer ?? {}));
  });

  async open(): Promise<void> {
    await new Promise<void>((listening) =>
      this.#server.listen(0, '127.0.0.1', listening),
    );
    this.issuer = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
    const scopes = 'pets:read=read,pets:write=write';
    Object.assign(this.env, {
      JWT_ISSUER: this.issuer,
      JWT_AUDIENCE: audience,
      JWT_SCOPES: scopes,
    });
    if (this.keys.length === 0) await this.addKey('first');
  }

  async addKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
    const key = await newKey(kid, alg);
    this.keys.push(key);
    return key;
  }

  /**
   * The claims of a token that is accepted, with others. An undefined claim is
   * left out.
   */
  claims(others: Record<string, unknown> = {}): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000);
    const usual = {
      iss: this.issuer,
      aud: audience,
      sub: 'ada',
      iat: now,
      exp: now + 300,
      scope: 'pets:read pets:write',
    };
    return { ...usual, ...others };
  }

  /** A token with these claims. */
  token(
    others: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
    key = this.keys[0] as SigningKey,
  ) {
    return compact(
      JSON.stringify({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header }),
      this.json(others),
      key,
    );
  }

  json(others: Record<string, unknown> = {}): string {
    return JSON.stringify(this.claims(others));
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((closed) => this.#server.close(() => closed()));
  }
}

export async function newKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, {
    extractable: true,
  });
  return {
    kid,
    alg,
    jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' },
    private: KeyObject.from(privateKey),
  };
}

export const base64url = (text: string | Buffer) =>
  Buffer.from(text).toString('base64url');

/** Signs two texts as they are, so that they need not be JSON. */
export function compact(
  header: string,
  payload: string,
  key: Pick<SigningKey, 'private' | 'alg'>,
): string {
  const input = `${base64url(header)}.${base64url(payload)}`;
  const hash = key.alg === 'EdDSA' ? undefined : `sha${key.alg.slice(2)}`;
  const padding = key.alg.startsWith('PS')
    ? { padding: 6, saltLength: -1 }
    : {};
  const signature = sign(hash, Buffer.from(input), {
    key: key.private,
    dsaEncoding: 'ieee-p1363',
    ...padding,
  });
  return `${input}.${base64url(signature)}`;
}

/** Signs with a secret (HS256). */
export function withSecret(
  header: string,
  payload: string,
  secret: string | Buffer,
): string {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

/**
 * Gives all tests of a file one provider; place it before the store that uses
 * it.
 */
export function providerForAll(): Provider {
  const provider = new Provider();
  beforeAll(() => provider.open());
  afterAll(() => provider.close());
  return provider;
}
