import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Sets the permissions of a file, or of a folder and of all that is in it. */
export function setModes(path: string, modes: { folders: number; files: number }): void {
  const isFolder = statSync(path).isDirectory();
  chmodSync(path, isFolder ? modes.folders : modes.files);
  if (isFolder) for (const name of readdirSync(path)) setModes(join(path, name), modes);
}
