import { readdirSync, rmSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/** Code that V8 has compiled once is kept, which halves the time of a start. Where nothing can be written, it is not. */
export function keepCompiled(/** @type {string} */ root) {
  // For workers, too; and whoever has named another folder keeps it.
  process.env.NODE_COMPILE_CACHE ||= folderIn(root);
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
}

/** The files of the service, its packages and its tests are some 3000. */
const mostEntries = 10_000;

/**
 * An entry is found by the path of its file, and stays when the file goes: each copy of the build that a test makes
 * leaves as many as it has files.
 *
 * @param {string} root
 */
export function boundCompiled(root) {
  for (const version of entriesOf(folderIn(root))) {
    const entries = join(folderIn(root), version);
    if (entriesOf(entries).length > mostEntries) rmSync(entries, { recursive: true, force: true });
  }
}

const folderIn = (/** @type {string} */ root) => join(root, 'dist', 'compile-cache');

/** @param {string} folder */
function entriesOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
