import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The file that says where the data of a store have gone. */
export function retiredFile(folder: string): string {
  return join(folder, 'retired');
}

/**
 * A store whose data live elsewhere is not opened any more: what was written there by mistake would be in one of two
 * places.
 *
 * @throws Error that says where they are
 */
export function assertInUse(folder: string): void {
  const file = retiredFile(folder);
  if (!existsSync(file)) return;
  throw new Error(`${readFileSync(file, 'utf8').trim()} To use this store again nevertheless, remove ${file}.`);
}
