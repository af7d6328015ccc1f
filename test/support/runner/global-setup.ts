import { chmodSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { open as openInspector } from 'node:inspector';
import { join } from 'node:path';
import { scratch } from '../folder.ts';

/**
 * Jest's `globalSetup`: creates one folder for all files of a run. The workers
 * of Jest are threads, which it ends without running their `exit` listeners, so
 * they cannot remove their own files.
 */
export default function globalSetup({
  randomize,
  seed,
}: {
  randomize?: boolean;
  seed: number;
}): void {
  // Waits for a debugger; `--inspect-wait` would hold the thread of the
  // embedded store, too.
  if (process.env.TEST_DEBUG) openInspector(9229, '127.0.0.1', true);
  if (randomize) process.env.TEST_SEED = `${seed}`;
  const folder = mkdtempSync(join(scratch, 'animal-store-tests-'));
  // Test servers run as other users.
  chmodSync(folder, 0o711);
  process.env.TEST_FOLDER = folder;
  process.once('exit', () =>
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  );
  if (process.env.TEST_DEEP) linkPackages();
}

/**
 * The packages of the deep tests are beside their sources, but the tests run
 * from `dist`.
 */
function linkPackages(): void {
  try {
    symlinkSync(
      '../../../test/deep/node_modules',
      'dist/test/deep/node_modules',
    );
  } catch (error) {
    // Another run may be making it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
