import { hash } from 'node:crypto';
import { once } from 'node:events';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  statfsSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { assertNotRetired, fullDisk, lockFileWithin, retire } from './lock.ts';
import type { EmbeddedOptions, Role, WorkerData } from './options.ts';

export type { EmbeddedOptions } from './options.ts';

/** An open embedded PostgreSQL. */
export type EmbeddedPostgres = Awaited<ReturnType<typeof openEmbeddedPostgres>>;

const socketPort = 5432;
const socketName = `.s.PGSQL.${socketPort}`;
// sockaddr_un.sun_path holds 108 bytes, including its terminator.
const longestSocketPath = 107;

/**
 * Opens the store in `dataDir`, or connects to the process that owns it and
 * takes over when that process ends.
 *
 * @throws Error with a readable message when the folder cannot be used.
 */
export async function openEmbeddedPostgres(
  dataDir: string,
  options: EmbeddedOptions = {},
) {
  const { onLost, ...others } = options;
  const folder = usableFolder(dataDir);
  if (!others.evenRetired) assertNotRetired(folder);
  const host = socketFolder(folder);
  const worker = new Worker(new URL('./postgres.worker.js', import.meta.url), {
    workerData: {
      ...others,
      dataDir: folder,
      socketPath: join(host, socketName),
    } satisfies WorkerData,
    stdout: true,
  });
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  let isOwner = false;
  const owned = new Promise<void>((resolve) => {
    worker.on('message', (role: Role) => {
      isOwner = role === 'owner';
      if (isOwner) resolve();
    });
  });
  const close = async () => {
    worker.ref();
    worker.removeAllListeners('error');
    worker.postMessage('close');
    // The thread may have died before it received the message.
    await exited;
  };
  await once(worker, 'message').catch((error) => {
    throw new Error(
      `The embedded store could not be opened: ${explained(error, folder)}`,
      { cause: error },
    );
  });
  worker.on('error', (error) =>
    onLost?.(new Error(explained(error, folder), { cause: error })),
  );
  return {
    /** The folder of the Unix socket, as `host` for libpq and pg. */
    host,
    /** Its address. It names port and TLS: the environment may have others. */
    url: `postgres://postgres@localhost:${socketPort}/postgres?host=${encodeURIComponent(host)}&sslmode=disable`,
    /**
     * False while another process owns it, and this process is connected to
     * that one.
     */
    get isOwner() {
      return isOwner;
    },
    /**
     * Resolves when this process owns it: immediately, or after the other
     * process has ended.
     */
    owned,
    /**
     * Runs work that only one process at a time may do.
     *
     * @throws Error after waiting for a minute
     */
    async exclusively<T>(work: () => Promise<T>) {
      const lock = join(folder, 'migration.lock');
      const release = await lockFileWithin(lock, longestExclusion);
      if (!release) throw new Error(excluded);
      return work().finally(release);
    },
    /**
     * Marks it as moved, so that it is not opened again.
     *
     * @param message names the new location
     */
    retire: (message: string) => retire(folder, message),
    close,
    /** Stops it from keeping the process alive. */
    closeAtEnd() {
      worker.unref();
      process.once('beforeExit', () => void close());
    },
  };
}

function usableFolder(dataDir: string) {
  try {
    makeFolder(dataDir);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return realpathSync(dataDir);
  } catch (cause) {
    throw new Error(
      `The data folder ${dataDir} cannot be written: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** Makes a folder and its parents. Below /proc Node's own would never end. */
function makeFolder(path: string) {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it.
    if (!existsSync(path)) throw error;
  }
}

/**
 * Returns the data folder or, when its path is too long for a socket, a private
 * folder in the system's temporary folder.
 *
 * @throws Error when other users have access to that folder
 */
function socketFolder(folder: string) {
  if (Buffer.byteLength(join(folder, socketName)) <= longestSocketPath)
    return folder;
  const name = hash('sha256', folder).slice(0, 24);
  const short = join(tmpdir(), `pglite-server-${name}`);
  mkdirSync(short, { recursive: true, mode: 0o700 });
  // Does not follow a symbolic link, because its owner could change its target.
  const found = lstatSync(short);
  if (
    !found.isDirectory() ||
    found.uid !== process.getuid?.() ||
    (found.mode & 0o077) !== 0
  ) {
    throw new Error(
      `The socket folder ${short} is another user's, or open to others; choose a shorter path for the data.`,
    );
  }
  return short;
}

const longestExclusion = 60_000;
const excluded =
  'Another process has been preparing the embedded store for a minute.';

const almostNothing = 32 * 1024 * 1024;

/**
 * Explains a failure: the engine does not distinguish a full disk from other
 * failures.
 */
function explained({ message }: Error, folder: string) {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > almostNothing ? message : fullDisk(folder);
}
