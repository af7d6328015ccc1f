import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineFolder } from '../config/config.ts';
import {
  abilityLost,
  isUnmigrated,
  reasonOf,
} from '../database/postgres-errors.ts';
import { StoreError } from '../errors.ts';

export const notMigrated =
  'The database has not been migrated (MIGRATE_ON_START, or the command `migrate`).';

/**
 * Why the service did not start, in one readable line (an invalid configuration
 * has a line for every mistake).
 */
export function startFailure(error: unknown) {
  const {
    code,
    address,
    port,
    hostname,
    message,
    variables = '',
  } = error as ListenError;
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${address} is taken (${variables}PORT, ${variables}HOST).`;
  if (code === 'EACCES' && port)
    return `Port ${port} on ${address} may not be opened by this user (${variables}PORT, ${variables}HOST).`;
  if (code === 'EADDRNOTAVAIL')
    return `${address} is no address of this machine (${variables}HOST).`;
  if (hostname)
    return `${hostname} is no address or name to listen on (${variables}HOST).`;
  if (code === 'ERR_MODULE_NOT_FOUND') return `${message}${remedyOf(message)}`;
  if (code === 'EISDIR') return 'The file is a folder.';
  if (isUnmigrated(error)) return notMigrated;
  const isUnreachable =
    error instanceof StoreError && code === 'SERVICE_UNAVAILABLE';
  if (isUnreachable && error.cause !== undefined)
    return `The database (DATABASE_URL) cannot ${abilityLost(error.cause)}: ${reasonOf(error.cause)}`;
  return reasonOf(error) || String(error);
}

/** How to install an optional package of the engine that is not installed. */
function remedyOf(message: string) {
  const [, name = ''] = /^Cannot find package '([^']+)'/.exec(message) ?? [];
  const { peerDependencies } = JSON.parse(
    readFileSync(join(engineFolder, 'package.json'), 'utf8'),
  );
  const wanted = peerDependencies[name];
  return wanted ? `; a feature needs it: npm install ${name}@${wanted}` : '';
}

type ListenError = NodeJS.ErrnoException & {
  address?: string;
  port?: number;
  /** That the system cannot resolve. */
  hostname?: string;
  /** Prefix of the variables with the address (`OPERATIONS_` or empty). */
  variables?: string;
};
