import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newFolder } from '../folder.ts';

const isRoot = process.getuid?.() === 0;

/** The folder of one server: its data, its configuration and its output. */
export type Home = Awaited<ReturnType<typeof newHome>>;

/**
 * Creates a folder, as root for this user: most servers refuse to run as root.
 */
export async function newHome(user: string) {
  const path = await newFolder();
  if (isRoot) chownSync(path, idOf(user, '-u'), idOf(user, '-g'));
  const remove = () =>
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
  const forget = atExit(remove);
  return {
    path,
    remove: () => {
      remove();
      forget();
    },
  };
}

const idOf = (user: string, which: '-u' | '-g') =>
  Number(execFileSync('id', [which, user], { encoding: 'utf8' }));

/** A server in the foreground. */
export interface Program {
  child: ChildProcess;
  pid: number;
  isRunning(): boolean;
  /** Sends the signal and waits for the end. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

/**
 * The command line that runs a program as this user, and ends it with this
 * process, even after SIGKILL.
 */
export function asUser(
  user: string,
  command: string[],
  deathSignal: NodeJS.Signals = 'SIGKILL',
): string[] {
  const identity = isRoot
    ? ['--reuid', user, '--regid', `${idOf(user, '-g')}`, '--clear-groups']
    : [];
  return [
    'setpriv',
    ...identity,
    '--pdeathsig',
    deathSignal.slice(3),
    '--',
    ...command,
  ];
}

/**
 * Starts a program in the foreground, in its folder, and writes its output to
 * `log`.
 */
export function startProgram(
  commandLine: string[],
  cwd: string,
  log: string,
  atExitSignal: NodeJS.Signals = 'SIGKILL',
): Program {
  const [command = '', ...args] = commandLine;
  const output = openSync(log, 'a');
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  const forget = atExit(() => child.kill(atExitSignal));
  const ended = new Promise<void>((done) => {
    child.once('error', () => done());
    child.once('exit', () => done());
  }).then(() => forget());
  const isRunning = () =>
    child.pid !== undefined &&
    child.exitCode === null &&
    child.signalCode === null;
  return {
    child,
    pid: child.pid ?? 0,
    isRunning,
    stop: async (signal) => {
      if (isRunning()) child.kill(signal);
      await ended;
    },
  };
}

/**
 * Waits until a server is up. @throws Error with the end of its log when it has
 * ended, or is not up in a minute.
 */
export async function untilUp(
  program: Program,
  log: string,
  isUp: () => Promise<boolean>,
): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await isUp().catch(() => false))) {
    const output = () => readFileSync(log, 'utf8').slice(-2000);
    if (!program.isRunning())
      throw new Error(`${program.child.spawnfile} has ended: ${output()}`);
    if (Date.now() > deadline)
      throw new Error(
        `${program.child.spawnfile} is not up after a minute: ${output()}`,
      );
    await pause(20);
  }
}

/** A server with its own configuration files. */
export interface Configured {
  /** The file with the output of the server. */
  log: string;
  /** Kills the server, and thereby its connections. */
  stop(): Promise<void>;
}

/**
 * Starts a server in a new folder with these files, and waits until it is up.
 */
export async function startConfigured(
  user: string,
  files: Record<string, string>,
  commandLine: (folder: string) => string[],
  isUp: () => Promise<boolean>,
): Promise<Configured> {
  const home = await newHome(user);
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(home.path, name), text);
  const log = join(home.path, 'log');
  const program = startProgram(
    asUser(user, commandLine(home.path)),
    home.path,
    log,
  );
  await untilUp(program, log, isUp);
  return {
    log,
    stop: async () => {
      await program.stop('SIGKILL');
      home.remove();
    },
  };
}

/** Whether a server listens on this port of 127.0.0.1. */
export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.end(() => resolve(true)),
    );
    socket.once('error', () => resolve(false));
  });
}

/** The running children of a process. */
export function childrenOf(pid: number): number[] {
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return list === '' ? [] : list.split(' ').map(Number);
}

/** Whether a process may still have connections. A zombie has no open files. */
export function hasConnections(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).length > 0;
  } catch {
    return false;
  }
}

const endings = new Set<() => void>();

/**
 * Registers a function that runs before this process ends for any reason but
 * SIGKILL: a server must not outlive the test or the drill that started it.
 * @returns a function that removes the registration
 */
export function atExit(end: () => void): () => void {
  listen();
  endings.add(end);
  return () => endings.delete(end);
}

let isListening = false;

function listen(): void {
  if (isListening) return;
  isListening = true;
  // In reverse order: a server before its folder.
  process.once('exit', () =>
    [...endings].reverse().forEach((end) => void end()),
  );
  // Without a listener these signals end the process without `exit`.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(1));
}
