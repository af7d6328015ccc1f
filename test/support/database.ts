import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../packages/embedded-postgres/src/postgres.ts';
import { preparedStore } from '../../src/prepared-store.ts';
import { citusLayout, createOnCluster } from './citus.ts';
import { newFolder } from './folder.ts';
import { query } from './query.ts';

/** The environment of an empty database of one's own, and how to get rid of it. */
export interface TestDatabase {
  env: { DATABASE_URL: string } | { DATA_DIR: string };
  drop(): Promise<void>;
}

/**
 * With TEST_DATABASE_URL, a new database on that server (not if ''), which the service reaches through the pooler at
 * TEST_POOLER_URL, if there is one. Else an embedded store that this process keeps
 * open, since opening one takes longer than most tests: a service opens it as a second process does.
 */
export async function createTestDatabase(server = process.env.TEST_DATABASE_URL): Promise<TestDatabase> {
  return server ? createOnServer(server) : createKept();
}

/** As the first; but without tables on a cluster, where `createTestDatabase` has them migrated and distributed. */
export async function createEmptyDatabase(server = process.env.TEST_DATABASE_URL): Promise<TestDatabase> {
  return server && citusLayout ? createOnCluster(server, true) : createTestDatabase(server);
}

/** As the first; but the embedded store is a folder that nobody has opened yet: the service owns it. */
export async function createOwnDatabase(server = process.env.TEST_DATABASE_URL): Promise<TestDatabase> {
  if (server) return createOnServer(server);
  const folder = await newFolder();
  return { env: { DATA_DIR: folder }, drop: () => rm(folder, { recursive: true, force: true }) };
}

interface Kept {
  folder: string;
  store: EmbeddedPostgres;
}

/** Those that no test has now. */
const kept: Kept[] = [];

async function createKept(): Promise<TestDatabase> {
  const one = kept.pop() ?? (await keep());
  const { host, user, database } = one.store;
  await query({ host, user, database }, 'drop schema public cascade', 'create schema public');
  return { env: { DATA_DIR: one.folder }, drop: async () => void kept.push(one) };
}

async function keep(): Promise<Kept> {
  const folder = await newFolder();
  const lost = (error: Error) => {
    throw error;
  };
  const store = await openEmbeddedPostgres(folder, { onLost: lost, prepared: preparedStore() });
  store.closeAtEnd();
  return { folder, store };
}

async function createOnServer(server: string): Promise<TestDatabase> {
  if (citusLayout) return createOnCluster(server);
  const name = `animal_store_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await query(server, `create database ${name}`);
  const drop = async () => void (await query(server, `drop database ${name} with (force)`));
  return { env: { DATABASE_URL: pooled(url) }, drop };
}

/** The same database by way of the pooler. */
function pooled(url: URL): string {
  const through = new URL(process.env.TEST_POOLER_URL || url);
  through.pathname = url.pathname;
  return through.href;
}
