import { type OpenApiMcpOptions, openApiMcp } from '@animal-store/openapi-mcp';
import type { FastifyInstance } from 'fastify';
import { hasScope } from '../../access/keys/bearer.ts';
import type { TokenOptions } from '../../access/keys/tokens.ts';
import { StoreError } from '../../errors.ts';
import { origin } from '../http/server.ts';

/** The operations as tools of assistants (@animal-store/openapi-mcp). */
const tools: Omit<OpenApiMcpOptions, 'document' | 'origins'> = {
  name: 'animal-store',
  // A tool's own request is charged, and needs its scope.
  config: {
    scope: 'read',
    isUnmetered: true,
    validatesItself: true,
    mayAnswer: 65_536,
  },
  // Every operation that only reads may answer 304.
  isListed: ({ responses }, { call }) =>
    '304' in responses || hasScope(call.caller, 'write'),
  refuse: (status, message) =>
    status === 403
      ? new StoreError(
          'FORBIDDEN',
          `${message} CORS_ORIGINS lists those that are.`,
        )
      : new StoreError('BAD_USER_INPUT', message),
  describe: ({ code, message }) => `${code}: ${message}`,
};

interface AssistantsOptions
  extends Pick<OpenApiMcpOptions, 'document' | 'origins'> {
  /** The identity provider, if any, at which assistants may log in. */
  tokens: TokenOptions | undefined;
}

export async function assistants(
  app: FastifyInstance,
  { tokens, ...options }: AssistantsOptions,
): Promise<void> {
  if (tokens) leadToLogin(app, tokens);
  await app.register(openApiMcp, { ...tools, ...options });
}

const metadata = '/.well-known/oauth-protected-resource';

/**
 * Leads clients of `/mcp` to the identity provider (RFC 9728; Model Context
 * Protocol, "Authorization").
 */
function leadToLogin(
  app: FastifyInstance,
  { issuer, audience, scopes }: TokenOptions,
): void {
  // With the second address clients begin that do not read the challenge (RFC
  // 9728, section 3.1).
  for (const url of [metadata, `${metadata}/mcp`]) {
    app.get(
      url,
      { schema: { hide: true }, config: { public: true } },
      async (request) => ({
        // The `resource` of RFC 8707, by which the provider chooses the token's
        // audience.
        resource: /^https?:/.test(audience)
          ? audience
          : `${origin(request)}/mcp`,
        authorization_servers: [issuer],
        scopes_supported: [
          ...new Set(
            scopes
              .split(',')
              .map((pair) => pair.slice(0, pair.lastIndexOf('='))),
          ),
        ],
        bearer_methods_supported: ['header'],
      }),
    );
  }
  app.addHook('onSend', async (request, reply) => {
    const challenge = reply.getHeader('www-authenticate');
    const isBare = challenge === 'Bearer';
    const address = `resource_metadata="${origin(request)}${metadata}"`;
    if (challenge)
      reply.header(
        'www-authenticate',
        `${challenge}${isBare ? '' : ','} ${address}`,
      );
  });
}
