import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullDisk } from './full-disk.ts';

/**
 * Takes an exclusive lock on a file. The operating system holds it for as long as the process lives: a killed process
 * leaves no stale lock behind. Node has no `flock`; SQLite, which is part of Node, takes one on its database file.
 *
 * @returns a function that releases the lock; undefined when another holder has it.
 * @throws Error with a readable message when the disk is full.
 */
export function lockFile(path: string): (() => void) | undefined {
  // Not imported: an older Node could not load this file, nor what says that it is too old.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const file = new DatabaseSync(path, { timeout: 0 });
  try {
    // Any user who can read the file could lock it.
    chmodSync(path, 0o600);
    file.exec('begin exclusive');
    return () => file.close();
  } catch (error) {
    file.close();
    if (codeOf(error) === SQLITE_BUSY) return undefined;
    throw codeOf(error) === SQLITE_FULL ? new Error(fullDisk(dirname(path)), { cause: error }) : error;
  }
}

/** Waits for the lock to be released. Signals are handled meanwhile, which SQLite's own waiting would prevent. */
export async function lockFileWithin(path: string, milliseconds: number): Promise<(() => void) | undefined> {
  const giveUpAt = performance.now() + milliseconds;
  for (;;) {
    const release = lockFile(path);
    if (release || performance.now() > giveUpAt) return release;
    await sleep(50);
  }
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

function codeOf(error: unknown): number | undefined {
  return (error as { errcode?: number }).errcode;
}
