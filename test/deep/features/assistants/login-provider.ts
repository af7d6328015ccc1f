import { generateKeyPairSync } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
// @ts-expect-error It has no types.
import { errors, Provider } from 'oidc-provider';

/**
 * A certified identity provider (`oidc-provider`) with clients that register
 * themselves, and Ada, who consents.
 */
export class LoginProvider {
  /** The resources for which it issues tokens (RFC 8707). */
  readonly resources: string[] = [];
  readonly #server: Server;
  #answer: (request: IncomingMessage, response: ServerResponse) => unknown =
    () => undefined;

  constructor() {
    this.#server = createServer((request, response) =>
      this.#answer(request, response),
    );
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async open(): Promise<void> {
    await new Promise<void>((listening) =>
      this.#server.listen(0, '127.0.0.1', listening),
    );
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = {
      ...privateKey.export({ format: 'jwk' }),
      kid: 'first',
      alg: 'ES256',
      use: 'sig',
    };
    const scope = 'pets:read pets:write';
    const provider = new Provider(this.issuer, {
      jwks: { keys: [jwk] },
      scopes: ['openid', 'offline_access', ...scope.split(' ')],
      cookies: { keys: ['only for tests'] },
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      findAccount: (_: unknown, accountId: string) => ({
        accountId,
        claims: () => ({ sub: accountId }),
      }),
      interactions: {
        url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}`,
      },
      features: {
        devInteractions: { enabled: false },
        registration: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, resource: string) => {
            if (!this.resources.includes(resource))
              throw new errors.InvalidTarget();
            return {
              scope,
              audience: resource,
              accessTokenFormat: 'jwt',
              jwt: { sign: { alg: 'ES256' } },
            };
          },
          useGrantedResource: () => true,
        },
      },
    });
    this.#answer = async (request, response) => {
      if (!request.url?.startsWith('/interaction/'))
        return provider.callback()(request, response);
      const { params } = await provider.interactionDetails(request, response);
      const grant = new provider.Grant({
        accountId: 'ada',
        clientId: params.client_id,
      });
      grant.addOIDCScope(params.scope);
      grant.addResourceScope(params.resource, params.scope);
      const consent = { grantId: await grant.save() };
      return provider.interactionFinished(request, response, {
        login: { accountId: 'ada' },
        consent,
      });
    };
  }

  /**
   * Logs Ada in, as her browser would. @returns the parameters of the client's
   * redirect address
   */
  async logIn(
    authorization: URL,
    redirectUrl: string,
  ): Promise<URLSearchParams> {
    const cookies = new Map<string, string>();
    let url = authorization;
    for (let redirects = 0; !url.href.startsWith(redirectUrl); redirects += 1) {
      if (redirects > 10) throw new Error(`${url} redirects for ever`);
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
      const response = await fetch(url, {
        redirect: 'manual',
        headers: { cookie },
      });
      for (const set of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
        cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (!location)
        throw new Error(
          `${url} answers with ${response.status}: ${await response.text()}`,
        );
      url = new URL(location, url);
    }
    return url.searchParams;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((closed) => this.#server.close(() => closed()));
  }
}
