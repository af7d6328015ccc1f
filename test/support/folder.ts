import { existsSync, statfsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const gibibyte = 2 ** 30;

/**
 * In memory if it has room, because a new store is some 400 files. They stay
 * there even when a process is killed.
 */
export const scratch = isRoomy('/dev/shm') ? '/dev/shm' : tmpdir();

function isRoomy(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > 2 * gibibyte;
}

/** Creates a folder, which the test removes. */
export const newFolder = () =>
  mkdtemp(join(process.env.TEST_FOLDER ?? scratch, 'animal-store-test-'));
