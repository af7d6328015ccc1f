import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as jest from '@jest/globals';
import pg from 'pg';
import type { EmbeddedAddress } from '../src/postgres.ts';

// `jest-light-runner` runs tests in plain Node.js, where Jest's functions are globals.
export const { describe, expect, test, beforeAll, afterAll, beforeEach, afterEach } =
  globalThis as unknown as typeof jest;

/** A folder that the test removes. */
export const newFolder = () => mkdtempSync(join(tmpdir(), 'embedded-postgres-test-'));

/** A session with a store. */
export async function sessionWith({ host, port = 5432 }: Pick<EmbeddedAddress, 'host'> & { port?: number }) {
  const session = new pg.Client({ host, port, user: 'postgres', database: 'postgres' });
  session.on('error', () => undefined);
  await session.connect();
  return session;
}
