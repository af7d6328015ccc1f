import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import type pg from 'pg';
import { newFolder } from '../../support/folder.ts';
import { type Env, freePort } from '../../support/process.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import type { Resources } from '../drill.ts';
import { createDatabase, type Service, startService } from '../service.ts';

/** A service that keeps its address across restarts, and its database. */
export interface Deployment {
  /** The current process. */
  service: Service;
  /** Direct access to the database. */
  database: string | pg.ClientConfig;
  /** Starts the service again after it has ended. */
  restart(): Promise<void>;
}

export const lacksPostgres = async () =>
  hasPostgres ? undefined : 'PostgreSQL';

/** Starts the service on a new PostgreSQL server. */
export async function deployOnPostgres(
  resources: Resources,
  env: Env = {},
): Promise<Deployment & { server: TestPostgres }> {
  const server = resources.add(await TestPostgres.start(), (one) =>
    one.remove(),
  );
  const url = server.url(await createDatabase(server));
  // Not a copy: `restart` replaces `service`.
  return Object.assign(
    await deploy(resources, { DATABASE_URL: url, ...env }, url),
    { server },
  );
}

/**
 * Starts the service on the embedded store. @param megabytes size of a separate
 * disk for the store
 */
export async function deployEmbedded(
  resources: Resources,
  env: Env = {},
  megabytes?: number,
): Promise<Deployment & { folder: string }> {
  const folder = resources.add(await newFolder(), (path) =>
    rmSync(path, { recursive: true, force: true }),
  );
  if (megabytes !== undefined) {
    execFileSync('mount', [
      '-t',
      'tmpfs',
      '-o',
      `size=${megabytes}m,mode=700`,
      'tmpfs',
      folder,
    ]);
    resources.add(folder, (path) => execFileSync('umount', [path]));
  }
  const database = { host: folder, user: 'postgres', database: 'postgres' };
  return Object.assign(
    await deploy(resources, { DATA_DIR: folder, ...env }, database),
    { folder },
  );
}

async function deploy(
  resources: Resources,
  env: Env,
  database: Deployment['database'],
): Promise<Deployment> {
  const environment = { PORT: `${await freePort()}`, ...env };
  const deployment: Deployment = {
    service: await startService(resources, environment),
    database,
    restart: async () => {
      // Otherwise the new process would find its port in use, and the old one
      // would serve the requests.
      if (isRunning(deployment.service.pid))
        throw new Error('The service is still running.');
      deployment.service = await startService(resources, environment);
    },
  };
  return deployment;
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** Text for the table: the longest recovery. */
export const longest = (recoveries: number[]) =>
  `${Math.round(Math.max(...recoveries))} ms at most`;

/** Reports recoveries that took longer than the limit (ms). */
export function tooLong(recoveries: number[], limit: number): string[] {
  const slow = recoveries.filter((one) => one > limit).map(Math.round);
  return slow.length > 0 ? [`it took ${slow.join(', ')} ms to recover`] : [];
}
