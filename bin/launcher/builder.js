import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { boundCompiled } from './compile-cache.js';
import { compilerIn, fingerprint, freshness, sourceFolders, sources, stampFile } from './freshness.js';

/**
 * Where the compiler writes, and what it remembers, so that the next build compiles what has changed. At the depth of
 * `dist`, because source maps name their sources by relative paths.
 */
const scratch = '.build';

/** How long (ms) one build waits for another: ten times as long as one takes on a busy machine. */
const patience = 120_000;

/**
 * Compiles, moves what has changed into `dist`, file by file, and makes the store that new ones are copied from. Two at
 * once: the second waits, and finds nothing left to do. One that is killed, or fails, leaves no stamp: the next begins
 * again.
 *
 * @param {string} root
 * @param {string} why
 * @returns {Promise<boolean>} false when it failed; why has been said
 */
export async function build(root, why) {
  const began = performance.now();
  // The service's own, which the operating system releases with the process. Node runs it without its types.
  const { lockFileWithin } = await import('../../packages/embedded-postgres/src/lock.ts');
  mkdirSync(join(root, 'dist'), { recursive: true });
  const release = await lockFileWithin(join(root, 'dist', '.build.lock'), patience);
  if (!release) throw new Error(`Another build has been under way for ${patience / 1000} seconds.`);
  try {
    if (freshness(root) === 'fresh') return true;
    process.stderr.write(`animal-store: the build is ${why}, building\n`);
    // Before the compiler reads: what changes from now on is for the next build.
    const made = fingerprint(root);
    rmSync(stampFile(root), { force: true });
    if (!(await isCompiled(root))) return false;
    install(root);
    boundCompiled(root);
    removeUnfinished(join(root, 'dist'));
    if ((await run(process.execPath, [join(root, 'dist/src/prepare.js')], root)) !== 0) return failed();
    write(stampFile(root), Buffer.from(made));
    process.stderr.write(`animal-store: built in ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
    return true;
  } finally {
    release();
  }
}

/** @param {string} root */
async function isCompiled(root) {
  const notes = join(root, scratch, 'notes.json');
  const args = ['-p', root, '--outDir', join(root, scratch), '--incremental', '--tsBuildInfoFile', notes];
  if ((await run(process.execPath, [compilerIn(root), ...args], root)) !== 0) return failed();
  if (outputs(root).every((path) => contents(join(root, scratch, path)))) return true;
  // Somebody has removed a part of it, which the compiler's notes do not know.
  rmSync(join(root, scratch), { recursive: true, force: true });
  return (await run(process.execPath, [compilerIn(root), ...args], root)) === 0 || failed();
}

function failed() {
  process.stderr.write('animal-store: the build has failed, and nothing of it is used\n');
  process.exitCode = 1;
  return false;
}

/** How long (ms) nobody takes to copy a store. */
const abandoned = 600_000;

/**
 * Stores that a build was killed while it made them (src/prepared-store.ts).
 *
 * @param {string} dist
 */
function removeUnfinished(dist) {
  for (const name of readdirSync(dist).filter((one) => one.startsWith('.prepared-store-'))) {
    const { mtimeMs } = statSync(join(dist, name), { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > abandoned) rmSync(join(dist, name), { recursive: true, force: true });
  }
}

/** @param {string} root */
function install(root) {
  const wanted = outputs(root);
  for (const path of wanted) {
    const bytes = contents(join(root, scratch, path));
    if (bytes && !contents(join(root, 'dist', path))?.equals(bytes)) write(join(root, 'dist', path), bytes);
  }
  const known = new Set(wanted);
  for (const output of [scratch, 'dist']) {
    for (const path of emitted(join(root, output))) {
      if (!known.has(path)) rmSync(join(root, output, path), { force: true });
    }
  }
}

/**
 * What the compiler makes of the sources, by paths in `dist`.
 *
 * @param {string} root
 */
function outputs(root) {
  return sources(root)
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${path.slice(0, -'.ts'.length)}.js`)
    .flatMap((path) => [path, `${path}.map`]);
}

/**
 * What is there of it, also of sources that are gone.
 *
 * @param {string} folder
 */
function emitted(folder) {
  return sourceFolders.flatMap((name) =>
    readdirSync(join(folder, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.js(?:\.map)?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)),
  );
}

/**
 * Whole or not at all: a process that runs may load it at any time.
 *
 * @param {string} path
 * @param {Buffer} bytes
 */
function write(path, bytes) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, bytes);
  renameSync(`${path}.new`, path);
}

/** @param {string} path */
function contents(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/**
 * Runs a program to its end. What it says goes to standard error: standard output is for results.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<number>} its exit code
 */
function run(program, args, cwd) {
  return new Promise((done, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 2, 2] });
    // Whoever ends the build ends it whole: a compiler left behind would write into the next one's files.
    const end = (/** @type {NodeJS.Signals} */ signal) => {
      child.kill(signal);
      process.exit(130);
    };
    const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
    for (const signal of signals) process.once(signal, end);
    child.once('error', reject);
    child.once('close', (code) => {
      for (const signal of signals) process.removeListener(signal, end);
      done(code ?? 1);
    });
  });
}
