import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * - `fresh`: made of what is there now
 * - `stale`: the sources, the compiler's settings or the installed packages are others
 * - `missing`: nothing is built
 * - `finished`: there is nothing to build with, as in the image: what is there is what there is
 *
 * @typedef {'fresh' | 'stale' | 'missing' | 'finished'} Freshness
 */

const compiled = 'dist/src/cli.js';

/** The folders with sources, whose structure `dist` has. */
export const sourceFolders = ['src', 'packages', 'migrations'];

/** What browsers get of it is bundled by the build (src/api/pages/bundle.ts). */
const bundledFolders = ['explorer'];

/** What the last build was made of. */
export const stampFile = (/** @type {string} */ root) => join(root, 'dist', '.built-from');

/** The compiler of this project, and no other that may be in the PATH. */
export const compilerIn = (/** @type {string} */ root) => join(root, 'node_modules', '.bin', 'tsc');

/**
 * @param {string} root
 * @returns {Freshness}
 */
export function freshness(root) {
  const isBuilt = existsSync(join(root, compiled));
  if (!existsSync(join(root, 'src')) || !existsSync(compilerIn(root))) return isBuilt ? 'finished' : 'missing';
  if (!isBuilt) return 'missing';
  return stampOf(root) === fingerprint(root) ? 'fresh' : 'stale';
}

/**
 * Builds if need be.
 *
 * @param {string} root
 * @returns {Promise<boolean>} false when there is nothing to run; why has been said
 */
export async function ensureBuilt(root) {
  const state = freshness(root);
  if (state === 'fresh' || state === 'finished') return true;
  if (!existsSync(join(root, 'src')) || !existsSync(compilerIn(root))) {
    process.stderr.write('There is no build here: install with the development dependencies once, and build.\n');
    process.exitCode = 1;
    return false;
  }
  const { build } = await import('./builder.js');
  return build(root, state);
}

/**
 * What a build is made of: each source by its size and the time of its last change, which costs a few milliseconds and
 * sees older files, too, that a change of branches or a backup has brought back; and the packages that are installed.
 *
 * @param {string} root
 */
export function fingerprint(root) {
  const hash = createHash('sha256');
  const installed = join(root, 'node_modules', '.package-lock.json');
  if (existsSync(installed)) hash.update(readFileSync(installed));
  for (const path of [
    'tsconfig.json',
    ...sources(root),
    ...bundledFolders.flatMap((folder) => filesIn(root, folder)),
  ]) {
    const { size, mtimeMs } = statSync(join(root, path), { throwIfNoEntry: false }) ?? { size: -1, mtimeMs: 0 };
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/**
 * What is compiled.
 *
 * @param {string} root
 */
export function sources(root) {
  return sourceFolders.flatMap((folder) => filesIn(root, folder));
}

/**
 * What editors leave beside the sources is none.
 *
 * @param {string} root
 * @param {string} folder
 * @returns {string[]} paths from the root, sorted
 */
function filesIn(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^\.|~$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
}

/** @param {string} root */
function stampOf(root) {
  try {
    return readFileSync(stampFile(root), 'utf8');
  } catch {
    return undefined;
  }
}
