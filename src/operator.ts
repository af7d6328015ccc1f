import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
import { distribute, type Layout } from './database/distribute.ts';
import type { Log } from './database/options.ts';
import { DeprecationUsage } from './deprecations/usage.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { preparedStore } from './prepared-store.ts';

/** What an operator's command works with. */
export interface Desk {
  keys: ApiKeyService;
  usage: DeprecationUsage;
  /** The migrations that have just been applied. */
  applied: string[];
}

/** @param always run migrations, even when the configuration leaves them to an operator. */
export async function atDesk(work: (desk: Desk) => Promise<void>, always = false): Promise<void> {
  const { database: options, migrateOnStart } = loadConfig(process.env);
  // Who asks for the migrations gets to see them.
  const prepared = migrateOnStart && !always ? preparedStore(options) : undefined;
  const database = await Database.open({ ...options, readUrls: undefined, prepared, log: waiting }, modelOf(modules));
  try {
    await database.reach();
    const applied = always || migrateOnStart ? await database.migrate() : [];
    await work({ keys: new ApiKeyService(database), usage: new DeprecationUsage(database), applied });
  } finally {
    await database.close();
  }
}

/** Migrates, and turns the tables into tables of a Citus cluster. @returns a line for each table */
export async function distributeTables(layout: Layout): Promise<string[]> {
  const { database: options } = loadConfig(process.env);
  if (!options.url)
    throw new Error('The embedded store is one node; distribute needs DATABASE_URL of a Citus cluster.');
  const model = modelOf(modules);
  // A table that moves to other nodes takes as long as its rows do.
  const database = await Database.open({ ...options, readUrls: undefined, statementTimeout: 0, log: waiting }, model);
  try {
    await database.reach();
    return await distribute(database, model, layout);
  } finally {
    await database.close();
  }
}

/** What a command waits for: standard output is for its results. */
const waiting: Log = {
  info: () => undefined,
  warn(fields, message) {
    const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    process.stderr.write(`animal-store: ${message} (${details.join(', ')})\n`);
  },
};
