import { existsSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  type EmbeddedOptions,
  openEmbeddedPostgres,
} from '@animal-store/pglite-server';
import type { DatabaseOptions } from '../../database/database.ts';
import { unavailable } from '../../database/postgres-errors.ts';
import { Unavailable } from '../../errors.ts';
import { retry } from '../../retry.ts';

/** The embedded store in a folder. */
export function storeIn(
  folder: string,
  options: Omit<EmbeddedOptions, 'onLost'> = {},
) {
  return {
    folder,
    name: `${folder} (DATA_DIR)`,
    exists: () => existsSync(join(folder, 'postgres', 'PG_VERSION')),
    /**
     * One process owns the store. When the owner ends, one of its guests takes
     * over.
     */
    async open({ onLost, log }: Pick<DatabaseOptions, 'onLost' | 'log'>) {
      const store = await openEmbeddedPostgres(folder, { ...options, onLost });
      const role = store.isOwner ? 'owner' : 'guest';
      log?.info({ folder, role }, 'embedded store opened');
      if (!store.isOwner) {
        void store.owned.then(() =>
          log?.info({ folder, role: 'owner' }, 'embedded store taken over'),
        );
      }
      return Object.assign(store, {
        // All sessions share one backend: the names of prepared statements
        // would collide, and no session has settings.
        options: {
          url: store.url,
          preparedStatements: 'false' as const,
          advice: undefined,
        },
        retryInTakeover,
      });
    },
  };
}

export type EmbeddedStore = ReturnType<typeof storeIn>;
export type OpenEmbeddedStore = Awaited<ReturnType<EmbeddedStore['open']>>;

/** How long (ms) a change of owner may take. */
const takeover = 30_000;

function retryInTakeover<T>(work: () => Promise<T>) {
  const giveUpAt = performance.now() + takeover;
  return retry(work, (error) => {
    const isTemporary = error instanceof Unavailable || unavailable(error);
    const isLate = performance.now() > giveUpAt;
    // In milliseconds, until the next attempt.
    return isTemporary && !isLate ? 100 : undefined;
  });
}

/** Minimum free space (MiB). */
const leastSpace = 256;

/** @throws Error when the space is insufficient */
export function spaceIn(folder: string) {
  const nearest = (path: string): string =>
    existsSync(path) ? path : nearest(dirname(path));
  const { bavail, bsize } = statfsSync(nearest(resolve(folder)));
  const free = Math.floor((bavail * bsize) / 2 ** 20);
  const found = `${free} MiB free in ${folder}`;
  if (free < leastSpace) throw new Error(`only ${found}`);
  return found;
}
