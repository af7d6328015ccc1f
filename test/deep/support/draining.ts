import type { TestDatabase } from '../../support/database.ts';
import { follow, type Stream } from '../../support/events.ts';
import { bootstrapKey, type ServerProcess } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/**
 * A connection or stream that outlives the signal would delay the drain beyond
 * the time limit of a test.
 */
export const environment = ({ env }: Pick<TestDatabase, 'env'>) => ({
  ...env,
  BOOTSTRAP_API_KEY: bootstrapKey,
  DRAIN_TIMEOUT_MS: '600000',
  KEEP_ALIVE_TIMEOUT_MS: '600000',
});
export const drained = { code: 0, signal: null, stderr: '' };
export const create = (server: ServerProcess, name: string) =>
  rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
export const followers = (
  server: ServerProcess,
  count: number,
): Promise<Stream[]> =>
  Promise.all(
    Array.from({ length: count }, () => follow(server, { after: '0' })),
  );
