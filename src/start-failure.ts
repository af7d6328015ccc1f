import { StoreError } from './errors.ts';
import { isUnmigrated } from './storage/database/errors.ts';

/** Why the service did not start, in one readable line (an invalid configuration has a line for every mistake). */
export function startFailure(error: unknown): string {
  const { code, address, port, message, variables = '' } = error as ListenError;
  if (code === 'EADDRINUSE') return `Port ${port} on ${address} is taken (${variables}PORT, ${variables}HOST).`;
  if (code === 'EACCES' && port)
    return `Port ${port} on ${address} may not be opened by this user (${variables}PORT, ${variables}HOST).`;
  if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine (${variables}HOST).`;
  if (isUnmigrated(error)) return 'The database has not been migrated (MIGRATE_ON_START; `npm run migrate`).';
  if (error instanceof StoreError && error.code === 'SERVICE_UNAVAILABLE' && error.cause !== undefined) {
    return `The database (DATABASE_URL) cannot be reached: ${reasonOf(error.cause)}`;
  }
  return message || String(error);
}

type ListenError = NodeJS.ErrnoException & {
  address?: string;
  port?: number;
  /** How the names of the variables begin that say where to listen; empty for the service's own. */
  variables?: string;
};

/** A host with several addresses fails with an AggregateError, which has no message of its own. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join('; ');
  return cause instanceof Error ? cause.message : String(cause);
}
