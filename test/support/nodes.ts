import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { buildApp } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import type { Store } from './store.ts';

type NodeOf = Pick<Store, 'database' | 'key' | 'modules' | 'contract'>;

/** A further node of the service on a store's database, with a configuration of its own. */
export interface ServiceNode {
  contract?: Store['contract'];
  origin: string;
  key: string;
  app: FastifyInstance;
  close(): Promise<void>;
}

/** Starts another node on the store's database; close it before the store. */
export async function startNode(
  { database, key, modules, contract }: NodeOf,
  env: Record<string, string> = {},
): Promise<ServiceNode> {
  const config = loadConfig({
    LOG_LEVEL: 'silent',
    AUTH_FAILURES_PER_MINUTE: '0',
    EVENT_LOOP_MAX_DELAY_MS: '0',
    GRAPHQL_JIT: process.env.TEST_GRAPHQL_JIT,
    ...env,
  });
  const app = await buildApp({ config, database, modules });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, key, app, contract, close: () => app.close() };
}

/** Runs `work` on a further node of a configuration of its own. */
export async function onNode<Result>(
  store: NodeOf,
  env: Record<string, string>,
  work: (node: ServiceNode) => Promise<Result>,
): Promise<Result> {
  const node = await startNode(store, env);
  try {
    return await work(node);
  } finally {
    await node.close();
  }
}
