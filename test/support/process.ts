import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';
import { send } from './http.ts';

/**
 * Tests for one kind of database only are skipped on the other; their titles
 * say why.
 */
export const onPostgres = process.env.TEST_DATABASE_URL !== undefined;

/**
 * False through a pooler and on a cluster: tests that start their own servers
 * are not repeated there.
 */
export const bringsServers =
  !process.env.TEST_POOLER_URL && !process.env.TEST_CITUS;

/** The same on PostgreSQL: tests that start their own servers run once. */
export const onPlainPostgres =
  onPostgres && !process.env.TEST_POOLER_URL && !process.env.TEST_CITUS;

/**
 * Whether each session belongs to the service. A pooler shares sessions, and
 * keeps old ones.
 */
export const ownsSessions = onPostgres && !process.env.TEST_POOLER_URL;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  child: ChildProcess;
  /** The output so far. */
  output: { stdout: string; stderr: string };
  ended: Promise<Ended>;
}

/** A running `main.js` that answers requests. */
export interface ServerProcess extends Running {
  origin: string;
  /** The configured key, for the test clients. */
  key: string;
  /** Sends the signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

export type Env = Record<string, string>;

/** A key for tests to which its rights do not matter. */
export const bootstrapKey = 'a-key-for-these-tests-and-no-others';

const running = new Set<ChildProcess>();

/**
 * Runs a program from the bundle, as it is shipped, with this environment only.
 * @param stdout a file to print to instead of to `output`
 */
export function run(
  program: 'main' | 'cli',
  args: string[],
  env: Env,
  stdout: 'pipe' | number = 'pipe',
): Running {
  return runFile(resolve(`dist/bundle/${program}.js`), args, env, stdout);
}

/** Like `run`, for any JavaScript file. */
export function runFile(
  file: string,
  args: string[],
  env: Env,
  stdout: 'pipe' | number = 'pipe',
  openFiles?: number,
): Running {
  const command = [process.execPath, file, ...args];
  // Node raises its soft limit to the hard one, and `ulimit` lowers both.
  const limited =
    openFiles === undefined
      ? command
      : ['sh', '-c', `ulimit -n ${openFiles} && exec "$@"`, 'sh', ...command];
  // Machines that run tests are busy. Only the tests of a time limit set a
  // short one.
  const ours = {
    EVENT_LOOP_MAX_DELAY_MS: '0',
    DATABASE_CONNECT_TIMEOUT_MS: '60000',
    DATABASE_STATEMENT_TIMEOUT_MS: '60000',
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
  };
  return runCommand(limited, { ...ours, ...env }, stdout);
}

/** Like `run`, for any command. */
export function runCommand(
  [program = '', ...args]: string[],
  env: Env,
  stdout: 'pipe' | number = 'pipe',
): Running {
  const child = spawn(program, args, {
    env: { ANIMAL_STORE_ENV_FILE: '', ...env },
    stdio: ['ignore', stdout, 'pipe'],
  });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text) => {
      output[name] += text;
    });
  }
  const ended = new Promise<Ended>((done) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      done({ code, signal, ...output });
    });
  });
  return { child, output, ended };
}

/** Runs an operator command to its end. */
export const cli = (args: string[], env: Env): Promise<Ended> =>
  run('cli', args, env).ended;

/** Runs a `main.js` that is expected to fail at its start. */
export async function startAndFail(env: Env): Promise<Ended> {
  return run('main', [], { PORT: `${await freePort()}`, ...env }).ended;
}

export interface StartOptions {
  /**
   * The path that must answer 200; `/livez` for a server that does not become
   * ready.
   */
  until?: '/livez' | '/readyz';
  /** A file to print to. */
  stdout?: number;
  /** The `main.js` of another build. */
  file?: string;
  /** The limit of open files. */
  openFiles?: number;
}

/**
 * Starts `main.js` on a free port and waits until it is ready. @throws Error
 * with its output when it ends instead.
 */
export async function startServer(
  env: Env,
  {
    until = '/readyz',
    stdout,
    file = resolve('dist/bundle/main.js'),
    openFiles,
  }: StartOptions = {},
): Promise<ServerProcess> {
  const port = env.PORT ?? (await freePort());
  const server = runFile(
    file,
    [],
    { PORT: `${port}`, ...env },
    stdout,
    openFiles,
  );
  const origin = `http://127.0.0.1:${port}`;
  // Tests that count connections would wait until an idle one has ended.
  const check = { path: until, headers: { connection: 'close' } };
  await eventually(async () => {
    if (!running.has(server.child))
      throw new Gone(JSON.stringify(await server.ended));
    return (await send(origin, check)).status === 200;
  });
  const key = env.BOOTSTRAP_API_KEY ?? '';
  return {
    ...server,
    origin,
    key,
    stop: (signal = 'SIGTERM') => stop(server, signal),
  };
}

function stop(
  { child, ended }: Running,
  signal: NodeJS.Signals,
): Promise<Ended> {
  child.kill(signal);
  return ended;
}

/** The signals of this list for which a process has a handler (proc(5)). */
export function handledBy(
  { child }: Running,
  signals: NodeJS.Signals[],
): NodeJS.Signals[] {
  const [, mask] =
    /^SigCgt:\s+(\w+)$/m.exec(
      readFileSync(`/proc/${child.pid}/status`, 'utf8'),
    ) ?? [];
  return signals.filter(
    (signal) =>
      (BigInt(`0x${mask}`) >> BigInt(constants.signals[signal] - 1)) & 1n,
  );
}

/** Kills all processes that a test has started. For `afterEach`. */
export async function killAll(): Promise<void> {
  const ends = [...running].map((child) => once(child, 'close'));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(ends);
}

// Below the system's ephemeral ports. Each worker of a run has its own range,
// because a test may close a port and open it again. The UDP port of the same
// number, held until the worker ends, keeps it from other runs: two servers
// would be started on one port, and the test of the one that fails would be
// answered by the other one.
const ports = { first: 10_000 + (threadId % 8) * 2500, count: 2500 };
let nextPort = Math.floor(Math.random() * ports.count);

/** Finds a free port of 127.0.0.1, and keeps it for this worker. */
export async function freePort(): Promise<number> {
  const port = ports.first + (nextPort++ % ports.count);
  const lock = createSocket('udp4').unref();
  const server = createServer();
  try {
    lock.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(lock, 'listening');
    await once(server.listen(port, '127.0.0.1'), 'listening');
    await new Promise((closed) => server.close(closed));
    return port;
  } catch {
    lock.close();
    return freePort();
  }
}

class Gone extends Error {}

/**
 * In ms, less than the limit of a test: a failed test must not go on polling,
 * which would keep its worker alive.
 */
const limit = 100_000;

/**
 * Polls until a condition is true. An error of the condition counts as false.
 */
export async function eventually(
  isTrue: () => Promise<boolean>,
): Promise<void> {
  const giveUpAt = performance.now() + limit;
  for (let cause: unknown; ; await pause(20)) {
    try {
      if (await isTrue()) return;
    } catch (error) {
      if (error instanceof Gone) throw error;
      cause = error;
    }
    if (performance.now() > giveUpAt)
      throw new Error(`The condition was not met within ${limit} ms.`, {
        cause,
      });
  }
}

/** Waits until `/readyz` reports that all workers are up. */
export function allUp({
  origin,
}: Pick<ServerProcess, 'origin'>): Promise<void> {
  return eventually(
    async () =>
      (await send(origin, { path: '/readyz' })).text === '{"status":"ok"}',
  );
}

/**
 * Whether a process runs. An ended orphan stays in state Z until process 1 has
 * reaped it.
 */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
