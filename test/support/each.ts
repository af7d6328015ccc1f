import { createTestDatabase, type TestDatabase } from './database.ts';
import { afterAll, afterEach, beforeAll, beforeEach } from './jest.ts';
import { killAll } from './process.ts';

/** Gives the tests of a file one empty database between them; no process that they start outlives them. */
export function databaseForAll(): Pick<TestDatabase, 'env'> {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(async () => {
    await killAll();
    await database.drop();
  });
  return {
    get env() {
      return database.env;
    },
  };
}

/** Gives each test of a file an empty database of its own; no process that it starts outlives it. */
export function databaseForEach(create = createTestDatabase): Pick<TestDatabase, 'env'> {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await create();
  });
  afterEach(async () => {
    await killAll();
    await database.drop();
  });
  return {
    get env() {
      return database.env;
    },
  };
}
