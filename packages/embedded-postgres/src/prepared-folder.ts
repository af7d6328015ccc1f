import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * A closed store that new ones are copied from: copying takes a fifth of a second, unpacking PGlite's own folder and
 * migrating it a second and a half. Its name depends on what it was made from, so one that is in use never changes.
 */
export interface PreparedFolder {
  /** The folder that it is in. */
  parent: string;
  /** The files that decide what it holds: migrations, mostly. */
  sources: string[];
}

/** @returns its path; undefined when it has not been made */
export function preparedFolder(prepared: PreparedFolder): string | undefined {
  const path = pathOf(prepared);
  return existsSync(path) ? path : undefined;
}

/** Makes it, unless it exists, and removes those of other sources. @param fill opens a store in a folder, and closes it */
export async function prepareFolder(prepared: PreparedFolder, fill: (dataDir: string) => Promise<void>): Promise<void> {
  const path = pathOf(prepared);
  if (existsSync(path)) return;
  const dataDir = mkdtempSync(join(tmpdir(), 'embedded-postgres-'));
  const copy = mkdtempSync(join(prepared.parent, `.${prefix}`));
  try {
    await fill(dataDir);
    cpSync(join(dataDir, 'postgres'), copy, { recursive: true });
    // The service may run as another user than the build.
    setModes(copy, { folders: 0o755, files: 0o644 });
    const others = readdirSync(prepared.parent).filter((name) => name.startsWith(prefix));
    renameSync(copy, path);
    for (const name of others) rmSync(join(prepared.parent, name), { recursive: true, force: true });
  } catch (error) {
    rmSync(copy, { recursive: true, force: true });
    // Another build was faster.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

/** Sets the permissions of a file, or of a folder and everything in it. */
export function setModes(path: string, modes: { folders: number; files: number }): void {
  const isFolder = statSync(path).isDirectory();
  chmodSync(path, isFolder ? modes.folders : modes.files);
  if (isFolder) for (const name of readdirSync(path)) setModes(join(path, name), modes);
}

const prefix = 'prepared-store-';

function pathOf({ parent, sources }: PreparedFolder): string {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const hash = createHash('sha256').update(readFileSync(join(dirname(engine), '..', 'package.json')));
  for (const source of sources) hash.update(source.slice(parent.length)).update(readFileSync(source));
  return join(parent, `${prefix}${hash.digest('hex').slice(0, 16)}`);
}
