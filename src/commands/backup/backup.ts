import type { FileHandle } from 'node:fs/promises';
import type { DatabaseOptions } from '../../storage/database/options.ts';
import { assertFree, writeGathered, writeWhole } from '../files.ts';
import type { Progress } from '../program.ts';
import type { Tally } from './rows.ts';
import { ScriptWriter } from './script.ts';
import { writeSnapshot } from './snapshot.ts';
import { assertStoreIn, inTransaction, withStore } from './store.ts';

export interface Backup {
  bytes: number;
  tables: Tally[];
  /** How long (ms) the store was held: requests waited. */
  heldMs: number;
}

/** Backs the embedded store up to a file, which appears when it is whole. @throws Error when the name is taken */
export async function backupTo(
  file: string,
  options: DatabaseOptions,
  force: boolean,
  progress: Progress,
): Promise<Backup> {
  assertFree(file, force);
  assertStoreIn(options.dataDir);
  return writeWhole(file, (handle) => write(handle, options, progress));
}

/** Backs the embedded store up to a stream. */
export async function backupToStream(
  output: NodeJS.WritableStream,
  options: DatabaseOptions,
  progress: Progress,
): Promise<Backup> {
  assertStoreIn(options.dataDir);
  return writeGathered(output, (handle) => write(handle, options, progress));
}

/** The script is complete only once the transaction has been: until then the engine may say that it has failed. */
function write(handle: FileHandle, options: DatabaseOptions, progress: Progress): Promise<Backup> {
  const script = new ScriptWriter(handle);
  return withStore(
    options,
    async ({ session }) => {
      let began = 0;
      const tables = await inTransaction(session, 'read only', () => {
        began = performance.now();
        return writeSnapshot(session, script, progress);
      });
      const heldMs = Math.round(performance.now() - began);
      await script.complete(tables);
      return { bytes: script.bytes, tables, heldMs };
    },
    { evenRetired: true },
  );
}
