import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { gunzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs';
import { parseTar } from 'nanotar';

/**
 * The major version of PostgreSQL in PGlite, and of the data that it can open.
 */
export const engineVersion = '18';

/**
 * PGlite writes zeros to its buffers at the start, and holds their memory. The
 * system has the files in its own cache.
 */
const settings = {
  startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'],
};

/**
 * Opens PGlite on a folder, and makes the folder private. A new folder is
 * unpacked: PGlite's `initdb` would take three times the memory and time, and
 * its own unpacking one second of CPU time more.
 *
 * @throws Error with a readable message when the folder holds something else,
 *   or data of another version.
 */
export async function openEngine(folder: string): Promise<PGlite> {
  // V8's optimising compiler takes 600 MB for one function of the engine
  // (apparently PostgreSQL's interpreter of expressions), without a measurable
  // gain. Its baseline compiler is enough.
  for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering'])
    setFlagsFromString(flag);
  const marker = `${folder}.unfinished`;
  // A process that was killed while unpacking leaves an incomplete folder.
  if (existsSync(marker)) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const versionFile = join(folder, 'PG_VERSION');
  if (existsSync(versionFile))
    return openExisting(folder, readFileSync(versionFile, 'utf8').trim());
  if (readdirSync(folder).length > 0) {
    throw new Error(
      `${folder} is not empty, and holds no database (PG_VERSION is missing).`,
    );
  }
  writeFileSync(marker, '');
  await unpackInto(folder);
  rmSync(marker);
  return PGlite.create(folder, settings);
}

async function unpackInto(folder: string) {
  const archive = await emptyDatabase();
  const entries = parseTar(gunzipSync(await archive.arrayBuffer()));
  for (const { name, type, data } of entries) {
    const path = join(folder, name);
    if (type === 'directory') mkdirSync(path, { mode: 0o700 });
    else writeFileSync(path, data ?? '', { mode: 0o600 });
  }
}

async function openExisting(folder: string, version: string): Promise<PGlite> {
  if (version !== engineVersion) {
    throw new Error(
      `${folder} was made by PostgreSQL ${version}, and this release has PostgreSQL ${engineVersion}. ` +
        'Nothing was changed. Back it up with the release that made it, and restore the backup into a new folder.',
    );
  }
  try {
    return await PGlite.create(folder, settings);
  } catch (cause) {
    // The engine reports only "PGlite failed to initialize properly".
    const why = `PostgreSQL cannot start on ${folder} (${(cause as Error).message}): a file of it may be damaged or missing.`;
    throw new Error(`${why} Restore a backup into a new folder.`, { cause });
  }
}
