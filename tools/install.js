// `node tools/install.js FOLDER...` installs the packages of folders that have
// a manifest of their own, unless they are installed. Scripts that need such
// packages call it, so that `npm ci` in the project's folder need not install
// them.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from '../bin/node.js';

/**
 * The folders without a lock file of their own, which use the packages of
 * another. @type {Record<string, string[]>}
 */
const users = {
  'test/deep': ['examples/react', 'examples/federation'],
};

for (const folder of process.argv.slice(2)) {
  if (!isInstalled(join(root, folder))) install(folder);
  for (const user of users[folder] ?? []) {
    const link = join(root, user, 'node_modules');
    // A reader of an example may have installed its packages in its folder.
    if (lstatSync(link, { throwIfNoEntry: false })) continue;
    symlinkSync(join(relative(user, folder), 'node_modules'), link);
  }
}

/** @param {string} folder */
function install(folder) {
  process.stderr.write(`animal-store: installing the packages of ${folder}\n`);
  const command = isLocked(join(root, folder)) ? 'ci' : 'install';
  const { status, error } = spawnSync(
    'npm',
    [command, '--no-audit', '--no-fund'],
    { cwd: join(root, folder), stdio: ['ignore', 2, 2] },
  );
  if (status === 0) return;
  process.stderr.write(
    `animal-store: the packages of ${folder} are not installed: ${error?.message ?? 'npm has failed'}\n`,
  );
  process.exit(1);
}

/** Peers of the benchmark have no lock file: their manifest names versions. */
function isLocked(/** @type {string} */ folder) {
  return existsSync(join(folder, 'package-lock.json'));
}

/**
 * Whether every package of the lock file, or of the manifest without one, is
 * installed in its version. Optional ones may be for other platforms.
 */
function isInstalled(/** @type {string} */ folder) {
  const wanted = isLocked(folder)
    ? packagesIn(join(folder, 'package-lock.json'))
    : packagesOf(join(folder, 'package.json'));
  const installed = packagesIn(join(folder, 'node_modules/.package-lock.json'));
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' ||
      optional ||
      (installed[path]?.version === version && existsSync(join(folder, path))),
  );
}

/** @returns {ReturnType<typeof packagesIn>} */
function packagesOf(/** @type {string} */ manifest) {
  const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8'));
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, version]) => [
      `node_modules/${name}`,
      { version },
    ]),
  );
}

/** @returns {Record<string, { version?: string; optional?: boolean }>} */
function packagesIn(/** @type {string} */ file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    // npm writes the second file when an installation is complete.
    return {};
  }
}
