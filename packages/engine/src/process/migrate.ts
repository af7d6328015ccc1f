import type { Database } from '../database/database.ts';
import { StoreError } from '../errors.ts';
import type { Service } from '../feature.ts';

/**
 * Applies pending migrations: none of them when a module has a fault with which
 * the service would not start.
 *
 * @returns the names of those applied
 */
export async function migrate(database: Database, service: Service) {
  // Loaded only for a check, because it takes a sixth of a command's time.
  const check = async () => {
    const { contracts } = await import('./contracts.ts');
    return contracts(service, process.env);
  };
  const pending = await database.pending();
  if (pending.length > 0) await check();
  try {
    return await database.migrate();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    // With those of the modules, because a start names all faults.
    await check().catch(({ message }) => {
      const own = (error as Error).message;
      throw new Error(`${own}\n${message}`);
    });
    throw error;
  }
}
