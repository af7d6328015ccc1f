import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * A closed store from which new stores are copied. Copying takes 0.2 seconds;
 * unpacking and migrating takes 1.5 seconds. Its name contains a hash of its
 * sources, so an existing folder never changes.
 */
export interface PreparedFolder {
  /** Its parent folder. */
  parent: string;
  /** The source files that determine its content, mostly migrations. */
  sources: string[];
}

/** @returns its path; undefined when it does not exist */
export function preparedFolder(prepared: PreparedFolder): string | undefined {
  const path = pathOf(prepared);
  return existsSync(path) ? path : undefined;
}

/**
 * Creates it unless it exists, and removes older ones. @param fill opens a
 * store in a folder, and closes it
 */
export async function prepareFolder(
  prepared: PreparedFolder,
  fill: (dataDir: string) => Promise<void>,
): Promise<void> {
  const path = pathOf(prepared);
  if (existsSync(path)) return;
  const dataDir = mkdtempSync(join(prepared.parent, `.${prefix}`));
  try {
    await fill(dataDir);
    const store = join(dataDir, 'postgres');
    // The service may run as another user than the build.
    setModes(store, { folders: 0o755, files: 0o644 });
    const others = readdirSync(prepared.parent).filter((name) =>
      name.startsWith(prefix),
    );
    renameSync(store, path);
    for (const name of others)
      rmSync(join(prepared.parent, name), { recursive: true, force: true });
  } catch (error) {
    // Another build was first.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

/** Sets permissions recursively. */
export function setModes(
  path: string,
  modes: { folders: number; files: number },
): void {
  const isFolder = statSync(path).isDirectory();
  chmodSync(path, isFolder ? modes.folders : modes.files);
  if (isFolder)
    for (const name of readdirSync(path)) setModes(join(path, name), modes);
}

const prefix = 'prepared-store-';

function pathOf({ parent, sources }: PreparedFolder): string {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const hash = createHash('sha256').update(
    readFileSync(join(dirname(engine), '..', 'package.json')),
  );
  for (const source of sources)
    hash.update(source.slice(parent.length)).update(readFileSync(source));
  return join(parent, `${prefix}${hash.digest('hex').slice(0, 16)}`);
}
