import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { newFolder } from './folder.ts';
import { afterAll, afterEach, beforeAll, beforeEach } from './jest.ts';
import { killAll } from './process.ts';

/**
 * Gives all tests of a file one empty database. Their processes are killed
 * after the last test.
 */
export const databaseForAll = () =>
  databaseFor(beforeAll, afterAll, createTestDatabase);

/**
 * Gives each test of a file an empty database. Its processes are killed after
 * the test.
 */
export const databaseForEach = (create = createTestDatabase) =>
  databaseFor(beforeEach, afterEach, create);

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
