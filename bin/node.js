// Runs on Node 18.
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Whether `npm run build` has bundled the last build. @returns {boolean} */
export function isBundled() {
  const time = (/** @type {string} */ name) =>
    statSync(join(root, 'dist', name), { throwIfNoEntry: false })?.mtimeMs;
  return (time('bundle/cli.js') ?? 0) > (time('.built') ?? 0);
}

const oldest = 24;
/**
 * Signals that a terminal, npm, a shell or a container runtime sends to end a
 * program.
 */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'];

/**
 * Runs work in this process if its Node.js is new enough; otherwise the same
 * program on the Node.js from node_modules.
 *
 * @param {() => Promise<unknown>} work
 */
export function onSupportedNode(work) {
  if (Number.parseInt(process.versions.node, 10) >= oldest) {
    if (process.env.ANIMAL_STORE_NODE) endWithLauncher();
    work().catch(fail);
    return;
  }
  const paths = [
    `node-${process.platform}-${process.arch}/bin/node`,
    '.bin/node',
  ];
  const node = paths
    .map((path) => join(root, 'node_modules', path))
    .find((path) => existsSync(path));
  if (node && !process.env.ANIMAL_STORE_NODE) runOn(node);
  else
    fail(
      new Error(
        `Node.js ${oldest} or later is needed, and this is ${process.version}. On Linux \`npm ci\` installs one.`,
      ),
    );
}

/**
 * Replaces this process, as far as Node allows: the same streams, process
 * group, signals and exit code.
 *
 * @param {string} node
 */
function runOn(node) {
  // Prevents that Node.js from looking for another one if it is too old as
  // well.
  const env = { ...process.env, ANIMAL_STORE_NODE: process.version };
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit', env });
  const forward = (/** @type {NodeJS.Signals} */ signal) =>
    void child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  child.once('error', fail);
  child.once('exit', (code, signal) => {
    for (const one of signals) process.removeListener(one, forward);
    if (signal === null) process.exit(code ?? 1);
    process.kill(process.pid, signal);
    // The shell's exit code, for a signal that does not end the process.
    setTimeout(
      () => process.exit(128 + (constants.signals[signal] ?? 0)),
      1000,
    );
  });
}

/** A launcher that is killed forwards no signal. */
function endWithLauncher() {
  const launcher = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 1000).unref();
}

/** @param {unknown} error */
function fail(error) {
  process.stderr.write(
    `animal-store: ${error instanceof Error ? error.message : error}\n`,
  );
  process.exit(1);
}
