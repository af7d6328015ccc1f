import { createServer, type RequestListener } from 'node:http';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
// @ts-expect-error It has no types.
import { Provider } from 'oidc-provider';

export const audience = 'https://animals.example';

export interface OidcOptions {
  /** Where its page may be. */
  page?: string;
  /** Seconds that a token lasts. */
  lifetime?: number;
}

/**
 * A real identity provider (oidc-provider), with a program and a page as its
 * clients. Any name and password log in.
 */
export interface Oidc {
  issuer: string;
  /** The service's variables. */
  env: Record<string, string>;
  /** How many seconds its clock is behind: its tokens end as much earlier. */
  behind: number;
  /** A token for the program (client credentials). */
  token(scope?: string): Promise<string>;
  /**
   * Signs with a new key from now on. @param keepsOld whether it goes on
   * publishing the old ones
   */
  rotate(keepsOld: boolean): Promise<void>;
  close(): Promise<void>;
}

const program = {
  client_id: 'importer',
  client_secret: 'a-secret-of-the-importer',
};

export async function startOidc({
  page = 'http://127.0.0.1:1',
  lifetime = 60,
}: OidcOptions = {}): Promise<Oidc> {
  let answer: RequestListener = (_request, response) =>
    response.writeHead(503).end();
  const server = createServer((request, response) => answer(request, response));
  await new Promise<void>((listening) =>
    server.listen(0, '127.0.0.1', listening),
  );
  const issuer = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const resource = {
    scope: 'pets:read pets:write',
    audience,
    accessTokenFormat: 'jwt',
    accessTokenTTL: lifetime,
    jwt: { sign: { alg: 'ES256' } },
  };
  const clients = [
    {
      ...program,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
    {
      client_id: 'shop',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [`${page}/`],
      post_logout_redirect_uris: [`${page}/`],
    },
  ];
  let keys: JWK[] = [];
  const oidc: Oidc = {
    issuer,
    env: {
      JWT_ISSUER: issuer,
      JWT_AUDIENCE: audience,
      JWT_SCOPES: 'pets:read=read,pets:write=write',
    },
    behind: 0,
    async token(scope = 'pets:read pets:write') {
      const { client_id, client_secret } = program;
      const form = {
        grant_type: 'client_credentials',
        client_id,
        client_secret,
        scope,
        resource: audience,
      };
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        body: new URLSearchParams(form),
      });
      const { access_token } = (await response.json()) as {
        access_token: string;
      };
      return access_token;
    },
    async rotate(keepsOld) {
      const added = [];
      for (const alg of ['ES256', 'RS256']) {
        const { privateKey } = await generateKeyPair(alg, {
          extractable: true,
        });
        added.push({
          ...(await exportJWK(privateKey)),
          alg,
          use: 'sig',
          kid: `${alg} ${Math.random()}`,
        });
      }
      keys = keepsOld ? [...added, ...keys] : added;
      const provider = new Provider(issuer, {
        clients,
        jwks: { keys },
        scopes: ['openid', 'pets:read', 'pets:write'],
        cookies: { keys: ['for tests only'] },
        features: {
          clientCredentials: { enabled: true },
          resourceIndicators: {
            enabled: true,
            defaultResource: () => audience,
            useGrantedResource: () => true,
            getResourceServerInfo: () => resource,
          },
          rpInitiatedLogout: { enabled: true },
        },
        formats: {
          customizers: {
            jwt(
              _context: unknown,
              _token: unknown,
              jwt: { payload: { exp: number } },
            ) {
              jwt.payload.exp -= oidc.behind;
            },
          },
        },
        clientAuthMethods: ['client_secret_post', 'none'],
        clientDefaults: { token_endpoint_auth_method: 'client_secret_post' },
        issueRefreshToken: async (
          _context: unknown,
          client: { grantTypeAllowed(type: string): boolean },
        ) => client.grantTypeAllowed('refresh_token'),
        clientBasedCORS: () => true,
      });
      answer = provider.callback();
    },
    close() {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
  await oidc.rotate(false);
  return oidc;
}
