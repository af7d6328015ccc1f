import { createTestDatabase, type TestDatabase } from './database.ts';
import { afterAll, afterEach, beforeAll, beforeEach } from './jest.ts';
import { killAll } from './process.ts';

/** Gives the tests of a file one empty database between them; no process that they start outlives them. */
export const databaseForAll = () => databaseFor(beforeAll, afterAll, createTestDatabase);

/** Gives each test of a file an empty database of its own; no process that it starts outlives it. */
export const databaseForEach = (create = createTestDatabase) => databaseFor(beforeEach, afterEach, create);

function databaseFor(before: typeof beforeAll, after: typeof afterAll, create: () => Promise<TestDatabase>) {
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
