import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '..', '..', '..', '..', 'assets');

/** Styles, scripts and icons of the pages: beside the build, as package.json is. */
export function asset(name: string): Buffer {
  return readFileSync(join(folder, name));
}
