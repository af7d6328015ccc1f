import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import type pg from 'pg';
import { newFolder } from '../../test/support/folder.ts';
import { type Env, freePort } from '../../test/support/process.ts';
import { hasPostgres, TestPostgres } from '../../test/support/servers/postgres.ts';
import type { Parts } from '../drill.ts';
import { createShop, type Service, startService } from '../service.ts';

/** A service that keeps its address over restarts, and its database. */
export interface Shop {
  /** The process that runs now. */
  service: Service;
  /** Where the animals are, past the service. */
  database: string | pg.ClientConfig;
  /** Starts the service once more, when it has ended. */
  restart(): Promise<void>;
}

export const lacksPostgres = async () => (hasPostgres ? undefined : 'PostgreSQL');

/** On a PostgreSQL of its own. */
export async function openShop(parts: Parts, env: Env = {}): Promise<Shop & { server: TestPostgres }> {
  const server = parts.add(await TestPostgres.start(), (one) => one.remove());
  const url = server.url(await createShop(server));
  // Not a copy of the shop, whose process changes.
  return Object.assign(await opened(parts, { DATABASE_URL: url, ...env }, url), { server });
}

/** On the embedded store. @param megabytes of a disk of its own for the store */
export async function openEmbeddedShop(
  parts: Parts,
  env: Env = {},
  megabytes?: number,
): Promise<Shop & { folder: string }> {
  const folder = parts.add(await newFolder(), (path) => rmSync(path, { recursive: true, force: true }));
  if (megabytes !== undefined) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', folder]);
    parts.add(folder, (path) => execFileSync('umount', [path]));
  }
  const database = { host: folder, user: 'postgres', database: 'postgres' };
  return Object.assign(await opened(parts, { DATA_DIR: folder, ...env }, database), { folder });
}

async function opened(parts: Parts, env: Env, database: Shop['database']): Promise<Shop> {
  const all = { PORT: `${await freePort()}`, ...env };
  const shop: Shop = {
    service: await startService(parts, all),
    database,
    restart: async () => {
      // Else it would find its port taken, and whoever asks would be served by the old one.
      if (isRunning(shop.service.pid)) throw new Error('The service is still running.');
      shop.service = await startService(parts, all);
    },
  };
  return shop;
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** The longest of several recoveries, in words. */
export const longest = (recoveries: number[]) => `${Math.round(Math.max(...recoveries))} ms at most`;

/** What must not be: that the service needs longer than this when all is there again. */
export function tooLong(recoveries: number[], limit: number): string[] {
  const late = recoveries.filter((one) => one > limit).map(Math.round);
  return late.length > 0 ? [`it took ${late.join(', ')} ms to recover`] : [];
}
