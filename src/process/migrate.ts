import type { Database } from '../database/database.ts';
import { modules } from '../modules/modules.ts';

/**
 * Applies pending migrations: none of them when a module has a fault with which
 * the service would not start.
 *
 * @returns the names of those applied
 */
export async function migrate(database: Database): Promise<string[]> {
  if ((await database.pending()).length > 0) {
    const { contracts } = await import('./contracts.ts');
    await contracts(modules, process.env);
  }
  return database.migrate();
}
