import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestPostgres } from './postgres.ts';

/** Answers 200 as long as this server is the primary, as Patroni does beside each PostgreSQL: TCP alone cannot tell. */
export async function startAgent(server: TestPostgres): Promise<{ port: number; close(): void }> {
  const agent = createServer(async (_, response) => {
    response.statusCode = (await isPrimary(server)) ? 200 : 503;
    response.setHeader('connection', 'close');
    response.end();
  });
  agent.listen(0, '127.0.0.1');
  await once(agent, 'listening');
  // A test that forgets it must not hang.
  agent.unref();
  return { port: (agent.address() as AddressInfo).port, close: () => void agent.close().closeAllConnections() };
}

async function isPrimary(server: TestPostgres): Promise<boolean> {
  try {
    const [row] = await server.query<{ is_primary: boolean }>('select not pg_is_in_recovery() as is_primary');
    return row?.is_primary ?? false;
  } catch {
    return false;
  }
}
