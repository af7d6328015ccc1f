import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export type Release = () => void;

/**
 * Takes an exclusive lock on a file. The operating system releases it when the
 * process ends, so a killed process leaves no stale lock. Node has no `flock`,
 * but Node's SQLite locks its database file.
 *
 * @returns a function that releases the lock; undefined when another holder has
 *   it.
 * @throws Error with a readable message when the disk is full.
 */
export function lockFile(path: string): Release | undefined {
  // Loaded dynamically: with a static import, an older Node could not report
  // that it is too old.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const file = new DatabaseSync(path, { timeout: 0 });
  try {
    // Otherwise any user who can read the file could lock it.
    chmodSync(path, 0o600);
    file.exec('begin exclusive');
    return () => file.close();
  } catch (error) {
    file.close();
    const { errcode } = error as { errcode?: number };
    if (errcode === SQLITE_BUSY) return undefined;
    if (errcode !== SQLITE_FULL) throw error;
    throw new Error(fullDisk(dirname(path)), { cause: error });
  }
}

/**
 * Waits for the lock without blocking signals, as SQLite's own waiting would.
 */
export async function lockFileWithin(
  path: string,
  milliseconds: number,
): Promise<Release | undefined> {
  const giveUpAt = performance.now() + milliseconds;
  for (;;) {
    const release = lockFile(path);
    if (release || performance.now() > giveUpAt) return release;
    await sleep(50);
  }
}

/** Marks a store as moved, so that nothing is written to it by mistake. */
export function retire(dataDir: string, message: string) {
  writeFileSync(retiredFile(dataDir), `${message}\n`, { flush: true });
}

/** @throws Error with the new location of a retired store */
export function assertNotRetired(dataDir: string) {
  const file = retiredFile(dataDir);
  if (!existsSync(file)) return;
  throw new Error(
    `${readFileSync(file, 'utf8').trim()} To use this store again nevertheless, remove ${file}.`,
  );
}

const retiredFile = (dataDir: string) => join(dataDir, 'retired');

/** The error message when the disk of the data folder is full. */
export function fullDisk(folder: string) {
  return `The disk of ${folder} is full. Make room and start again: what was acknowledged is there.`;
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
