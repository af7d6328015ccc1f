import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of this release, from the package.json beside the build. */
export function releasedVersion(): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'));
  return version;
}

/** The oldest supported Node.js. Not in package.json, because npm itself may run on an older one. */
const oldest = 24;

/** @throws Error when this Node.js is older */
export function assertNode(): void {
  if (Number.parseInt(process.versions.node, 10) >= oldest) return;
  const remedy = 'On Linux `npm ci` brings one, which `npm start` and bin/animal-store.js find by themselves.';
  throw new Error(`This is Node.js ${process.versions.node}, and ${oldest} or later is needed. ${remedy}`);
}
