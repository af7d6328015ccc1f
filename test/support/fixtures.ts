import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { newFolder } from './folder.ts';
import { afterAll, afterEach, beforeAll, beforeEach } from './jest.ts';
import { openNode } from './migrations.ts';
import { killAll } from './process.ts';

/**
 * Gives all tests of a file one database without rows. Their processes are killed
 * after the last test.
 */
export const databaseForAll = () =>
  databaseFor(beforeAll, afterAll, createMigratedDatabase);

/**
 * Gives each test of a file a database without rows. Its processes are killed after
 * the test.
 */
export const databaseForEach = (create = createMigratedDatabase) =>
  databaseFor(beforeEach, afterEach, create);

/** Here tables take a quarter of the time that a new process needs for them. */
async function createMigratedDatabase(): Promise<TestDatabase> {
  const created = await createTestDatabase();
  const { database } = await openNode(created);
  await database.migrate();
  await database.close();
  return created;
}

function databaseFor(
  before: typeof beforeAll,
  after: typeof afterAll,
  create: () => Promise<TestDatabase>,
) {
  let database: TestDatabase;
  before(async () => {
    database = await create();
  });
  after(async () => {
    await killAll();
    await database.drop();
  });
  return {
    get env() {
      return database.env;
    },
  };
}

export interface Folders {
  /** The path for an embedded store. */
  store: string;
  /** The path of a file that does not exist yet. */
  file(name: string): string;
  /** A folder for another store. */
  another(): Promise<string>;
}

/** Gives each test its own folders, on every kind of database. */
export function foldersForEach(): Folders {
  let folders: string[] = [];
  const another = async () => {
    const folder = await newFolder();
    folders.push(folder);
    return folder;
  };
  beforeEach(async () => void (await another()));
  afterEach(async () => {
    await killAll();
    for (const folder of folders)
      await rm(folder, { recursive: true, force: true });
    folders = [];
  });
  return {
    get store() {
      return join(folders[0] as string, 'store');
    },
    file: (name) => join(folders[0] as string, name),
    another,
  };
}
