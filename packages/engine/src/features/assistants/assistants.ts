import {
  type OpenApiMcpOptions,
  openApiMcp,
  type Subscriptions,
} from '@animal-store/openapi-mcp';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../database/database.ts';
import { StoreError } from '../../errors.ts';
import { hasScope, type Scope } from '../../scopes.ts';
import { eventTypesOf } from './event-types.ts';

/** The operations as tools of assistants (@animal-store/openapi-mcp). */
const tools: Omit<OpenApiMcpOptions, 'name' | 'document' | 'origins'> = {
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
  onStream({ call }) {
    call.streamedAfter = performance.now() - call.arrived;
  },
};

export async function serveAssistants(
  app: FastifyInstance,
  database: Database,
  { name, http: { corsOrigins: origins } }: Config,
) {
  await app.register(openApiMcp, {
    ...tools,
    name,
    document: () => app.swagger(),
    events: (document) => eventTypesOf(document, database),
    subscriptions: () => database.subscriptions as Subscriptions | undefined,
    origins,
  });
}
