import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of this release, from the package.json beside the build. */
export function releasedVersion(): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'));
  return version;
}
