import { createHash } from 'node:crypto';
import { accessSync, constants, lstatSync, mkdirSync, realpathSync, statfsSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { fullDisk } from './full-disk.ts';
import { lockFileWithin } from './lock.ts';
import type { WorkerData } from './postgres.worker.ts';
import { assertInUse } from './retired.ts';

/** Where an embedded PostgreSQL listens. */
export interface EmbeddedAddress {
  /** The folder of the Unix socket, as `host` for libpq and pg. */
  host: string;
  port: number;
  user: 'postgres';
  database: 'postgres';
}

/** The embedded PostgreSQL: where it listens, and how to close it. */
export interface EmbeddedPostgres extends EmbeddedAddress {
  /** False while another process has it open, and this one is connected to that. */
  readonly isOwner: boolean;
  /** Resolves when this process has it open: at once, or when that other one has ended. */
  owned: Promise<void>;
  /** Excludes other processes on the same folder. @returns a function that readmits them; undefined after a timeout */
  exclude(milliseconds: number): Promise<(() => void) | undefined>;
  close(): Promise<void>;
  /** Closes it when nothing else is left to do, so that it does not keep the process alive. */
  closeAtEnd(): void;
}

const port = 5432;
// sockaddr_un.sun_path holds 108 bytes, including its terminator.
const longestSocketPath = 107;

/**
 * Opens the store in `dataDir`, or connects to the process that has it open and takes over when that process ends.
 *
 * @param onLost called when the store's thread dies; nothing can be served after that.
 * @param prepared what a new store begins with; see `openEngine`.
 * @param evenRetired opens it although its data have gone elsewhere; see `retired.ts`.
 * @throws Error with a readable message when the folder cannot be used.
 */
export async function openEmbeddedPostgres(
  dataDir: string,
  onLost: (error: Error) => void,
  prepared?: string,
  evenRetired = false,
): Promise<EmbeddedPostgres> {
  const folder = usableFolder(dataDir);
  if (!evenRetired) assertInUse(folder);
  const host = socketFolder(folder);
  const socketPath = join(host, `.s.PGSQL.${port}`);
  const worker = new Worker(new URL(`./postgres.worker${extname(import.meta.url)}`, import.meta.url), {
    workerData: { dataDir: folder, socketPath, prepared, evenRetired } satisfies WorkerData,
    stdout: true,
  });
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  let isOwner = false;
  const owned = new Promise<void>((resolve) => {
    worker.on('message', (message) => {
      isOwner = message === 'owner';
      if (isOwner) resolve();
    });
  });
  await answering(worker, socketPath, folder);
  worker.on('error', (error) => onLost(new Error(reasonOf(error, folder), { cause: error })));
  return {
    host,
    port,
    user: 'postgres',
    database: 'postgres',
    get isOwner() {
      return isOwner;
    },
    owned,
    exclude: (milliseconds) => lockFileWithin(join(folder, 'migration.lock'), milliseconds),
    close: () => closed(worker, exited),
    closeAtEnd() {
      worker.unref();
      process.once('beforeExit', () => void closed(worker, exited));
    },
  };
}

/**
 * The process that has the store in `dataDir` open, if there is one. Nothing is opened, and nothing is made.
 *
 * @param dataDir a folder that exists
 */
export async function findEmbeddedPostgres(dataDir: string): Promise<EmbeddedAddress | undefined> {
  const host = socketFolderOf(realpathSync(dataDir));
  const isOpen = await accepts(join(host, `.s.PGSQL.${port}`));
  return isOpen ? { host, port, user: 'postgres', database: 'postgres' } : undefined;
}

function usableFolder(dataDir: string): string {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return realpathSync(dataDir);
  } catch (cause) {
    throw new Error(`The data folder ${dataDir} (DATA_DIR) cannot be written: ${(cause as Error).message}`, { cause });
  }
}

/**
 * The data folder itself; or a private one in the system's temporary folder, when the path is too long for a socket.
 */
function socketFolderOf(folder: string): string {
  if (Buffer.byteLength(join(folder, `.s.PGSQL.${port}`)) <= longestSocketPath) return folder;
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 24);
  return join(tmpdir(), `animal-store-${name}`);
}

/** Makes it, where it is a private one. @throws Error when somebody else may use it */
function socketFolder(folder: string): string {
  const short = socketFolderOf(folder);
  if (short === folder) return folder;
  mkdirSync(short, { recursive: true, mode: 0o700 });
  // Does not follow a symbolic link, because whoever created it could change its target.
  const found = lstatSync(short);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new Error(`The socket folder ${short} is another user's, or open to others; choose a shorter DATA_DIR.`);
  }
  return short;
}

/** Resolves when the store answers, opened by our own thread or by another process. */
async function answering(worker: Worker, socketPath: string, folder: string): Promise<void> {
  let opened = false;
  let standby = false;
  let failure: Error | undefined;
  worker.on('message', (message) => {
    opened = message === 'owner';
    standby = message === 'standby';
  });
  worker.once('error', (error: Error) => {
    failure = error;
  });
  while (!opened && !(standby && (await accepts(socketPath)))) {
    if (failure) {
      throw new Error(`The embedded store could not be opened: ${reasonOf(failure, folder)}`, { cause: failure });
    }
    await sleep(20);
  }
}

const almostNothing = 32 * 1024 * 1024;

/** Explains a failure: the engine does not distinguish a full disk from other failures. */
function reasonOf({ message }: Error, folder: string): string {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize > almostNothing) return message;
  return fullDisk(folder);
}

function accepts(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath, () => socket.end(() => resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

async function closed(worker: Worker, exited: Promise<void>): Promise<void> {
  worker.ref();
  worker.removeAllListeners('error');
  worker.postMessage('close');
  // The thread may have died before it received the message.
  await exited;
}
