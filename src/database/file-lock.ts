import { DatabaseSync } from 'node:sqlite';

/**
 * An exclusive lock on a file, held by the operating system for as long as the process lives: a killed process leaves
 * no stale lock behind. Node has no `flock`; SQLite, which is part of Node, takes one on its database file.
 *
 * @param waitMs how long to wait for the holder to let go; the thread is blocked meanwhile.
 * @returns a function that releases the lock; undefined when somebody else holds it.
 */
export function lockFile(path: string, waitMs: number): (() => void) | undefined {
  const file = new DatabaseSync(path, { timeout: waitMs });
  try {
    file.exec('begin exclusive');
    return () => file.close();
  } catch (error) {
    file.close();
    if (isLocked(error)) return undefined;
    throw error;
  }
}

const SQLITE_BUSY = 5;

function isLocked(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_BUSY;
}
