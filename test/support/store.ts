import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { buildApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import { Database } from '../../src/database/database.ts';
import { ApiKeyService } from '../../src/keys/api-key.service.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** A running service on a port and a database of its own. */
export interface Store {
  origin: string;
  /** A key that may do everything. */
  key: string;
  app: FastifyInstance;
  database: Database;
  keys: ApiKeyService;
  /** Removes all animals; ids go on. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the service as `main.ts` does, in this process. @param given a database that the test has made, and prepared */
export async function startStore(env: Record<string, string> = {}, given?: TestDatabase): Promise<Store> {
  const test = given ?? (await createTestDatabase());
  const config = loadConfig({
    LOG_LEVEL: 'silent',
    AUTH_FAILURES_PER_MINUTE: '0',
    GRAPHQL_JIT: process.env.TEST_GRAPHQL_JIT,
    ...test.env,
    ...env,
  });
  const database = await Database.open(config.database);
  await database.migrate();
  const app = await buildApp({ config, database });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const keys = new ApiKeyService(database);
  const { key } = await keys.issue({ name: 'test' });
  return {
    origin: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    key,
    app,
    database,
    keys,
    empty: async () => {
      await database.rows({ name: 'empty', text: 'delete from pet' }, []);
    },
    close: async () => {
      await app.close();
      await database.close();
      await test.drop();
    },
  };
}
