// Compiles what has changed. `npm run build` runs this file; the launcher imports it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onSupportedNode, root } from './node.js';

const dist = join(root, 'dist');
/** Its modification time is the start of the last successful build. */
const stamp = join(dist, '.built');
const compiler = join(root, 'node_modules/.bin/tsc');
/** The sources of the build. */
const inputs = [
  'src',
  'packages',
  'migrations',
  'tsconfig.json',
  'node_modules/.package-lock.json',
  'docs',
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'assets/guide.html',
  'bin/guide.mjs',
];

/**
 * Builds if a source is newer than the last build. Concurrent processes build once.
 *
 * @returns {Promise<boolean>} false when the build failed; the reason was printed
 */
export async function ensureBuilt() {
  // The image contains neither sources nor a compiler.
  const canBuild = existsSync(join(root, 'src')) && existsSync(compiler);
  if (!canBuild && existsSync(join(dist, 'src/cli.js'))) return true;
  if (!canBuild) return failed('nothing is built here: run `npm ci` with the development dependencies');
  if (isFresh()) return true;
  mkdirSync(dist, { recursive: true });
  const { DatabaseSync } = await import('node:sqlite');
  // Node.js has no `flock`. SQLite holds a lock on its file, and the operating system releases it with the process.
  const lock = new DatabaseSync(join(dist, '.lock'), { timeout: 300_000 });
  try {
    lock.exec('begin exclusive');
    return isFresh() || (await build());
  } finally {
    lock.close();
  }
}

async function build() {
  const began = Date.now();
  process.stderr.write('animal-store: compiling\n');
  const options = ['--incremental', '--noEmitOnError', '--tsBuildInfoFile', join(dist, '.tsbuildinfo')];
  // The compiler would not write a removed file again.
  if (!existsSync(stamp)) rmSync(join(dist, '.tsbuildinfo'), { force: true });
  if (!(await run(compiler, '-p', root, ...options))) return failed('the sources do not compile');
  removeOrphans();
  if (!(await run(join(dist, 'src/prepare.js')))) return failed('the build has failed');
  writeFileSync(stamp, '');
  utimesSync(stamp, new Date(began), new Date(began));
  process.stderr.write(
    `${process.stderr.isTTY ? '\n' : ''}animal-store: compiled in ${((Date.now() - began) / 1000).toFixed(1)} s\n`,
  );
  return true;
}

/** Removes the output of sources that were removed. */
function removeOrphans() {
  for (const folder of ['src', 'packages', 'migrations'].filter((name) => existsSync(join(dist, name)))) {
    for (const name of readdirSync(join(dist, folder), { recursive: true, encoding: 'utf8' })) {
      const [, stem] = /^(.*)\.js(?:\.map)?$/.exec(name) ?? [];
      if (stem && !existsSync(join(root, folder, `${stem}.ts`))) rmSync(join(dist, folder, name));
    }
  }
}

function isFresh() {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  return (
    built !== undefined && existsSync(join(dist, 'src/cli.js')) && !inputs.some((path) => isNewer(join(root, path)))
  );

  /** @param {string} path @returns {boolean} */
  function isNewer(path) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return false;
    // A folder's time changes when a file in it is added or removed.
    if (found.mtimeMs > /** @type {number} */ (built)) return true;
    return found.isDirectory() && readdirSync(path).some((name) => isNewer(join(path, name)));
  }
}

/** Runs a script. Its output goes to standard error: standard output is for results. A terminal shows a dot each second. */
async function run(/** @type {string[]} */ ...args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] });
  const sign = setInterval(() => process.stderr.isTTY && process.stderr.write('.'), 1000);
  const [code] = await once(child, 'close').finally(() => clearInterval(sign));
  return code === 0;
}

function failed(/** @type {string} */ reason) {
  process.stderr.write(`animal-store: ${reason}\n`);
  process.exitCode = 1;
  return false;
}

if (process.argv[1] === join(root, 'bin/build.js')) onSupportedNode(ensureBuilt);
