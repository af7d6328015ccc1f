import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { openFilesLimit } from '../../api/http/connections.ts';
import { type Finding, failure, look, ok, type Result, warning } from './finding.ts';

export interface MachineOptions {
  /** How the build and its sources compare; undefined where nothing can tell, as in the image. */
  freshness: string | undefined;
  version: string;
}

const mebibyte = 1024 * 1024;
/** With less room (bytes) something will fail soon; with almost none the store does not open. */
const room = { enough: 1024 * mebibyte, least: 64 * mebibyte };
/** Connections are files, and so are the store's. */
const fewFiles = 1024;

/** The program itself, and what the operating system lets it have. */
export function lookAtMachine({ freshness, version }: MachineOptions): Promise<Finding[]> {
  return Promise.all([
    look('program', () =>
      ok(`animal-store ${version} on Node.js ${process.versions.node}, ${process.platform} ${process.arch}`),
    ),
    look('build', () =>
      freshness === 'stale'
        ? warning('older than its sources', 'npm run build; `npm start` and `npm run store` do so by themselves')
        : ok(freshness === 'fresh' ? 'made of the sources that are here' : 'as it was delivered: no sources here'),
    ),
    look('open files', () => files(openFilesLimit())),
  ]);
}

function files(limit: number): Result {
  if (limit >= fewFiles) return ok(Number.isFinite(limit) ? `${limit} at a time` : 'without a limit');
  return warning(`only ${limit} at a time: fewer clients than that`, 'ulimit -n 65536, or LimitNOFILE of systemd');
}

/** The folder of the embedded store. It is not made: the first start does that. */
export function lookAtFolder(dataDir: string): Promise<Finding> {
  return look('data folder', () => folder(resolve(dataDir)), 'choose another DATA_DIR, or the user who owns this one');
}

function folder(path: string): Result {
  if (!existsSync(path)) {
    const parent = nearest(dirname(path));
    accessSync(parent, constants.W_OK | constants.X_OK);
    return spaceIn(parent, `${path} is not there yet: the first start makes it`);
  }
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  const { uid } = statSync(path);
  if (process.getuid && uid !== process.getuid()) {
    const found = `${path} is the user ${uid}'s, and this is the user ${process.getuid()}`;
    return warning(found, 'run the service and its commands as one user: what another has made it may not open');
  }
  if (!existsSync(join(path, 'postgres')) && readdirSync(path).length > 0) {
    return warning(`${path} has other things in it, and no store`, 'give the store a folder of its own (DATA_DIR)');
  }
  return spaceIn(path, path);
}

function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path));
}

function spaceIn(path: string, found: string): Result {
  const { bavail, bsize } = statfsSync(path);
  const free = bavail * bsize;
  const text = `${found}, ${Math.floor(free / mebibyte)} MiB free`;
  if (free < room.least) return failure(text, 'make room: creations are refused without it');
  return free < room.enough ? warning(text, 'make room before creations are refused') : ok(text);
}
