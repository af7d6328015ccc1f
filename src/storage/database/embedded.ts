import {
  type EmbeddedAddress,
  type EmbeddedOptions,
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '../../../packages/embedded-postgres/src/postgres.ts';
import type { DatabaseOptions } from './options.ts';

// No other file of this folder imports the package.
export { type EmbeddedAddress, type EmbeddedOptions, type EmbeddedPostgres, openEmbeddedPostgres };

/** Opens the embedded store in `dataDir`. One process owns it; the others are its guests, and one of them takes over. */
export async function openEmbedded({ dataDir, prepared, onLost, log, embedded }: DatabaseOptions) {
  const store = await openEmbeddedPostgres(dataDir, { prepared, onLost, ...embedded });
  log?.info({ folder: dataDir, role: store.isOwner ? 'owner' : 'guest' }, 'embedded store opened');
  if (!store.isOwner) {
    void store.owned.then(() => log?.info({ folder: dataDir, role: 'owner' }, 'embedded store taken over'));
  }
  return store;
}
