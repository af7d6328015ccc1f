import { constants, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { constants as systemConstants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MikroORM } from '@mikro-orm/postgresql';
import { assertInUse } from '../../../packages/embedded-postgres/src/lock.ts';
import {
  type EmbeddedAddress,
  type EmbeddedPostgres,
  findEmbeddedPostgres,
  openEmbeddedPostgres,
} from '../../storage/database/embedded.ts';
import { type DatabaseOptions, type Model, ormOptions } from '../../storage/database/options.ts';
import { endPool, poolOf } from '../../storage/database/pool.ts';
import { Server } from '../../storage/database/server.ts';
import { findSessions, type Sessions, sessionsFor } from '../../storage/database/sessions.ts';

/** A database that is looked at, and not changed. */
export interface Opened {
  /** What it is, and where. */
  what: string;
  orm: MikroORM;
  server: Server;
  sessions: Sessions;
  close(): Promise<void>;
}

/** How long (ms) a copy may take to be closed. */
const patience = 5000;

/** The largest store (bytes) that is copied to be looked at. */
const mostCopied = 2 ** 30;

/**
 * Opens the configured database. An embedded store that a process has open is asked through that process; one that
 * nobody has open is copied, and the copy opened, because an engine writes to what it opens, and as the user who runs it.
 *
 * @returns why not, when there is nothing to open
 * @throws Error, the driver's or one with a readable message, when it cannot be opened
 */
export async function openToLook(options: DatabaseOptions, model: Model): Promise<Opened | string> {
  if (options.url) {
    const { host, pathname } = new URL(options.url);
    return opened(`${host}${pathname}`, await findSessions(options.url, options), options, model);
  }
  const { dataDir } = options;
  const store = join(dataDir, 'postgres');
  if (!existsSync(join(store, 'PG_VERSION'))) return 'there is no store yet: the first start makes it';
  assertInUse(dataDir);
  const running = await findEmbeddedPostgres(dataDir);
  if (running) return openedAt('the embedded store, which is in use', running, options, model);
  if (existsSync(`${store}.unfinished`)) return 'a first start was cut short: the next one begins again';
  const bytes = sizeOf(store);
  if (bytes > mostCopied || bytes > freeIn(tmpdir()))
    return 'the store is large and nobody has it open: start the service';
  return openCopy(store, options, model);
}

async function openCopy(store: string, options: DatabaseOptions, model: Model): Promise<Opened> {
  const copy = mkdtempSync(join(tmpdir(), 'animal-store-doctor-'));
  // The engine may be writing: a folder that was emptied is filled again.
  const remove = () => rmSync(copy, { recursive: true, force: true, maxRetries: 10 });
  let embedded: Promise<EmbeddedPostgres> | undefined;
  let ending: Promise<void> | undefined;
  const close = async () => {
    await (await embedded)?.close();
    remove();
  };
  const end = () => {
    ending ??= close();
    return ending;
  };
  // Also when somebody has no patience: a gigabyte must not stay behind.
  process.once('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const exit = () => process.exit(128 + systemConstants.signals[signal]);
    // One Ctrl-C may arrive twice: from the terminal and from npm.
    process.on(signal, () => {
      void end().finally(exit);
      setTimeout(exit, patience);
    });
  }
  try {
    cpSync(store, join(copy, 'postgres'), { recursive: true, mode: constants.COPYFILE_FICLONE });
    embedded = openEmbeddedPostgres(copy);
    return await openedAt('the embedded store, which nobody has open', await embedded, options, model, end);
  } catch (error) {
    remove();
    throw error;
  }
}

async function openedAt(
  what: string,
  address: EmbeddedAddress,
  options: DatabaseOptions,
  model: Model,
  afterwards?: () => Promise<void>,
): Promise<Opened> {
  return opened(what, await sessionsFor(options, address), options, model, afterwards);
}

async function opened(
  what: string,
  sessions: Sessions,
  options: DatabaseOptions,
  model: Model,
  afterwards = async () => {},
): Promise<Opened> {
  const orm = new MikroORM(ormOptions({ ...options, poolMax: 2 }, model, sessions.config));
  const server = new Server(await poolOf(orm), sessions);
  const close = () => endPool(orm, server.pool).finally(afterwards);
  return { what, orm, server, sessions, close };
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

function freeIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
