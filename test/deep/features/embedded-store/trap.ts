import pg from 'pg';
import { expect } from '../../../support/jest.ts';

/** Makes the engine of the store in a folder trap. */
export async function trapEngine(folder: string): Promise<void> {
  const guest = new pg.Client({
    host: folder,
    user: 'postgres',
    database: 'postgres',
  });
  guest.on('error', () => undefined);
  await guest.connect();
  // The number is no valid address. WebAssembly traps ("memory access out of
  // bounds"), and V8 turns the SIGSEGV into an exception.
  await guest.query(
    "create function trap(int) returns int language internal strict as 'textlen'",
  );
  await expect(guest.query('select trap(2147483000)')).rejects.toThrow(
    'Connection terminated unexpectedly',
  );
}
