import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type EmbeddedOptions,
  openEmbeddedPostgres,
} from '@animal-store/pglite-server';
import { Unavailable } from '../errors.ts';
import type { DatabaseOptions, OwnStore } from './options.ts';
import { unavailable } from './postgres-errors.ts';
import { retry } from './postgres-server.ts';

/** The embedded store in a folder. */
export function embeddedStore(
  folder: string,
  options: Omit<EmbeddedOptions, 'onLost'> = {},
) {
  return {
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
      if (role === 'guest') {
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
          onAdvice: undefined,
        },
        patiently,
      });
    },
  } satisfies OwnStore;
}

export type OpenEmbeddedStore = Awaited<
  ReturnType<ReturnType<typeof embeddedStore>['open']>
>;

/** How long (ms) a change of owner may take. */
const takeover = 30_000;

function patiently<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + takeover;
  return retry(work, (error) => {
    const isTemporary =
      error instanceof Unavailable || unavailable(error) !== undefined;
    return isTemporary && performance.now() <= giveUpAt ? 100 : undefined;
  });
}
