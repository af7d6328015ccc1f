// Runs on Node 18.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

/** The first that has what the service is made of. */
const oldest = 24;

/** Those that a terminal, npm, a shell or a container's runtime sends to end a program. */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'];

/**
 * Runs work in this process when its Node is new enough; else the same program on the Node that the packages brought.
 *
 * @param {string} root the project's folder
 * @param {() => Promise<void>} work
 */
export function onSupportedNode(root, work) {
  if (isSupported(process.versions.node)) {
    work().catch(fail);
    return;
  }
  const node = ownNode(root);
  if (node) runIn(node, process.argv.slice(1));
  else
    fail(
      new Error(`It needs Node.js ${oldest} or later, and this is ${process.version}. On Linux \`npm ci\` brings one.`),
    );
}

/** @param {string} version */
function isSupported(version) {
  return Number(version.split('.')[0]) >= oldest;
}

/** @param {string} root */
function ownNode(root) {
  const paths = [`node-${process.platform}-${process.arch}/bin/node`, '.bin/node'];
  return paths.map((path) => join(root, 'node_modules', path)).find((path) => existsSync(path));
}

/**
 * As if this process had become that one: the same streams and process group, its signals, its end.
 *
 * @param {string} program
 * @param {string[]} args
 */
function runIn(program, args) {
  // Should that Node be too old as well, it must not look for another one.
  const env = { ...process.env, ANIMAL_STORE_NODE: process.version };
  if (process.env.ANIMAL_STORE_NODE) fail(new Error(`The Node.js in ${program} is older than ${oldest}.`));
  const child = spawn(program, args, { stdio: 'inherit', env });
  const forward = (/** @type {NodeJS.Signals} */ signal) => void child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  child.once('error', fail);
  child.once('exit', (code, signal) => {
    for (const one of signals) process.removeListener(one, forward);
    if (signal === null) process.exit(code ?? 1);
    process.kill(process.pid, signal);
    // One that does not end a process of its own accord, as a shell would tell of it.
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 1000);
  });
}

/** @param {unknown} error */
function fail(error) {
  process.stderr.write(`animal-store: ${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
