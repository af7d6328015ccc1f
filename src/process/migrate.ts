import type { Database } from '../database/database.ts';
import { StoreError } from '../errors.ts';
import { modules } from '../modules/modules.ts';

/**
 * Applies pending migrations: none of them when a module has a fault with which
 * the service would not start.
 *
 * @returns the names of those applied
 */
export async function migrate(database: Database): Promise<string[]> {
  const { contracts } = await import('./contracts.ts');
  const check = () => contracts(modules, process.env);
  if ((await database.pending()).length > 0) await check();
  return database.migrate().catch(async (error) => {
    if (error instanceof StoreError) throw error;
    // With those of the modules, because a start names all faults.
    await check().catch(({ message }) => {
      throw new Error(`${error.message}\n${message}`);
    });
    throw error;
  });
}
