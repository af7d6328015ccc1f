import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** The environment of an empty database of one's own, and how to get rid of it. */
export interface TestDatabase {
  env: { DATABASE_URL: string } | { DATA_DIR: string };
  drop(): Promise<void>;
}

/** An embedded store in a folder of its own; or, with TEST_DATABASE_URL, a new database on that server (not if ''). */
export async function createTestDatabase(server = process.env.TEST_DATABASE_URL): Promise<TestDatabase> {
  return server ? createOnServer(server) : createEmbedded();
}

async function createEmbedded(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-test-'));
  return { env: { DATA_DIR: folder }, drop: () => rm(folder, { recursive: true, force: true }) };
}

async function createOnServer(server: string): Promise<TestDatabase> {
  const name = `animal_store_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await onServer(server, `create database ${name}`);
  return { env: { DATABASE_URL: url.href }, drop: () => onServer(server, `drop database ${name} with (force)`) };
}

async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
