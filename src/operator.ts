import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
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
  const database = await Database.open({ ...options, prepared }, modelOf(modules));
  try {
    await database.reach();
    const applied = always || migrateOnStart ? await database.migrate() : [];
    await work({ keys: new ApiKeyService(database), usage: new DeprecationUsage(database), applied });
  } finally {
    await database.close();
  }
}
