import { exact } from '@animal-store/exact-json';
import type { OpenApiMcpOptions } from '@animal-store/openapi-mcp';
import { hasScope } from '../../access/keys/bearer.ts';
import { StoreError } from '../../errors.ts';

/** The operations as tools of assistants (@animal-store/openapi-mcp). */
export const assistants: Omit<OpenApiMcpOptions, 'document' | 'origins'> = {
  name: 'animal-store',
  // A tool's own request is charged, and needs its scope.
  config: { scope: 'read', isUnmetered: true, validatesItself: true },
  isListed: ({ responses }, { caller }) => !('403' in responses) || hasScope(caller, 'write'),
  refuse: (status, message) => new StoreError(status === 403 ? 'FORBIDDEN' : 'BAD_USER_INPUT', message),
  describe: ({ code, message }) => `${code}: ${message}`,
  stringify: (value) => JSON.stringify(value, exact),
};
