import type { FastifyInstance, RouteOptions } from 'fastify';
import { origin } from '../../api/http/server.ts';
import { reportFault } from '../../errors.ts';
import { assertScopes } from '../../scopes.ts';
import { type Provider, scopePairs } from './provider.ts';

/** @throws Error for a scope of a module that does not exist */
export function assertScopesExist(
  { scopeModules }: FastifyInstance,
  { scopes }: Provider,
) {
  const names = scopePairs(scopes).map(({ ours }) => ours);
  try {
    assertScopes(names, scopeModules);
  } catch (error) {
    reportFault(`JWT_SCOPES ${(error as Error).message}.`);
  }
}

const metadata = '/.well-known/oauth-protected-resource';

/**
 * Leads clients of later routes with `leadsToLogin` to the identity provider
 * (RFC 9728; Model Context Protocol, "Authorization").
 */
export function leadToLogin(
  app: FastifyInstance,
  { issuer, audience, scopes }: Provider,
) {
  const names = scopePairs(scopes).map(({ theirs }) => theirs);
  const addMetadata = (url: string, path: string) =>
    app.get(
      url,
      { schema: { hide: true }, config: { public: true } },
      async (request) => ({
        // The `resource` of RFC 8707, by which the provider chooses the token's
        // audience.
        resource: /^https?:/.test(audience) ? audience : origin(request) + path,
        authorization_servers: [issuer],
        scopes_supported: [...new Set(names)],
        bearer_methods_supported: ['header'],
      }),
    );
  app.addHook('onRoute', ({ url, config }: RouteOptions) => {
    if (!config?.leadsToLogin) return;
    // With the second address clients begin that do not read the challenge (RFC
    // 9728, section 3.1).
    addMetadata(metadata, url);
    addMetadata(metadata + url, url);
  });
  app.addHook('onSend', async (request, reply) => {
    const challenge = reply.getHeader('www-authenticate');
    if (!challenge || !request.route.config.leadsToLogin) return;
    // A scheme has a space before its first parameter, further ones a comma.
    const start = challenge === 'Bearer' ? challenge : `${challenge},`;
    const address = `resource_metadata="${origin(request)}${metadata}"`;
    reply.header('www-authenticate', `${start} ${address}`);
  });
}
