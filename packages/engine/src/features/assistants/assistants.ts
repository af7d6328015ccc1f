import { type OpenApiMcpOptions, openApiMcp } from '@animal-store/openapi-mcp';
import type { FastifyInstance } from 'fastify';
import { StoreError } from '../../errors.ts';
import { hasScope, type Scope } from '../../scopes.ts';

/** The operations as tools of assistants (@animal-store/openapi-mcp). */
const tools: Omit<OpenApiMcpOptions, 'document' | 'origins'> = {
  name: 'animal-store',
  // Each tool's REST request is charged, and needs the scope of its operation.
  config: {
    scope: 'read',
    leadsToLogin: true,
    isUnmetered: true,
    validatesItself: true,
    mayAnswer: () => 65_536,
  },
  isListed: ({ 'x-scope': scope }, { call }) =>
    hasScope(call.caller, scope as Scope),
  refuse: (status, message) =>
    status === 403
      ? new StoreError(
          'FORBIDDEN',
          `${message} CORS_ORIGINS lists those that are.`,
        )
      : new StoreError('BAD_USER_INPUT', message),
  describe: ({ code, message }) => `${code}: ${message}`,
};

/** @param origins of pages that may call */
export async function serveAssistants(
  app: FastifyInstance,
  origins: readonly string[],
) {
  const document = () => app.swagger();
  await app.register(openApiMcp, { ...tools, document, origins });
}
