import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import {
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '@animal-store/pglite-server';
import { loadConfig } from '#engine/config/config.js';
import type { DatabaseOptions } from '#engine/database/database.js';
import { databaseOptions } from '#engine/feature.js';
import { service } from '../../src/service.ts';
import { features } from './features.ts';
import { newFolder } from './folder.ts';
import { eventually } from './process.ts';
import { citusLayout, createOnCluster } from './servers/citus-database.ts';
import { query } from './session.ts';

/** The environment of an empty database for a file or a test. */
export interface TestDatabase {
  env: { DATABASE_URL: string } | { DATA_DIR: string };
  drop(): Promise<void>;
}

/**
 * Creates a database on the server of TEST_DATABASE_URL; the service reaches it
 * through the pooler of TEST_POOLER_URL, if that is set. Without a server, or
 * with '', gives an embedded store that this process keeps open, because
 * opening one takes longer than most tests. A service then opens it as a second
 * process.
 */
export async function createTestDatabase(
  server = process.env.TEST_DATABASE_URL,
): Promise<TestDatabase> {
  return server ? createOnServer(server) : createOnEngine();
}

/**
 * Like `createTestDatabase`, but without tables on a cluster, where
 * `createTestDatabase` migrates and distributes them.
 */
export async function createEmptyDatabase(
  server = process.env.TEST_DATABASE_URL,
): Promise<TestDatabase> {
  return server && citusLayout
    ? createOnCluster(server, true)
    : createTestDatabase(server);
}

/**
 * Like `createTestDatabase`, but the embedded store is an empty folder: the
 * service creates and owns the store.
 */
export async function createOwnDatabase(
  server = process.env.TEST_DATABASE_URL,
): Promise<TestDatabase> {
  if (server) return createOnServer(server);
  const folder = await newFolder();
  return {
    env: { DATA_DIR: folder },
    drop: () => rm(folder, { recursive: true, force: true }),
  };
}

/** How the service opens a database that its environment names. */
export const optionsFor = (
  env: Record<string, string>,
): Promise<DatabaseOptions> =>
  databaseOptions(features, loadConfig(env, features, service));

interface Engine {
  folder: string;
  store: EmbeddedPostgres;
}

/** Open embedded stores that no test uses now. */
const idleEngines: Engine[] = [];

async function createOnEngine(): Promise<TestDatabase> {
  const one = idleEngines.pop() ?? (await openEngine());
  await query(
    one.store.url,
    'drop schema public cascade',
    'create schema public',
  );
  return {
    env: { DATA_DIR: one.folder },
    drop: async () => void idleEngines.push(one),
  };
}

async function openEngine(): Promise<Engine> {
  const folder = await newFolder();
  const lost = (error: Error) => {
    throw error;
  };
  const store = await openEmbeddedPostgres(folder, { onLost: lost });
  store.closeAtEnd();
  return { folder, store };
}

async function createOnServer(server: string): Promise<TestDatabase> {
  if (citusLayout) return createOnCluster(server);
  const name = `animal_store_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await query(server, `create database ${name}`);
  // PostgreSQL 12 has no `with (force)`.
  const endSessions = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
  // On a busy machine sessions end late, and a pooler may open others.
  const drop = () =>
    eventually(async () => {
      await query(server, endSessions, `drop database if exists ${name}`);
      return true;
    });
  return { env: { DATABASE_URL: pooled(url) }, drop };
}

/** The URL of the same database through the pooler. */
function pooled(url: URL): string {
  const through = new URL(process.env.TEST_POOLER_URL || url);
  through.pathname = url.pathname;
  return through.href;
}
