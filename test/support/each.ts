import { createTestDatabase, type TestDatabase } from './database.ts';
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
