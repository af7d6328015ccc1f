import { citusNode } from '../../storage/database/citus.ts';
import type { DatabaseOptions } from '../../storage/database/options.ts';
import { poolWith } from '../../storage/database/pool.ts';
import { type Position, positionOf } from '../../storage/database/positions.ts';
import { Server } from '../../storage/database/server.ts';
import { findSessions } from '../../storage/database/sessions.ts';
import { type Finding, look, ok, type Result, warning } from './finding.ts';

/** The service goes on without them, and says so in its log: what is wrong here is a warning. */
const tolerable = (finding: Finding): Finding =>
  finding.state === 'failure' ? { ...finding, state: 'warning' } : finding;

/** Servers that answer reads: whether each is used, and how far it is behind. */
export function lookAtReadNodes({ readUrls = [], ...options }: DatabaseOptions): Promise<Finding[]> {
  const { url = '' } = options;
  return Promise.all(
    readUrls.map(async (node) => {
      const name = `read node ${new URL(node).host}`;
      const remedy = 'until it can be used, the primary answers its reads (docs/scale.md)';
      return tolerable(await look(name, () => readNode(node, url, options), remedy));
    }),
  );
}

async function readNode(node: string, primary: string, options: DatabaseOptions): Promise<Result> {
  const [there, here] = [await ask(node, options), await ask(primary, options)];
  if (there.isCitus) return ok('a node of Citus');
  if (there.position.system !== here.position.system)
    throw new Error('It is another server than the one in DATABASE_URL, or a copy of another one.');
  if (!there.position.isReplica) return ok('the primary itself');
  const bytes = here.position.bytes - there.position.bytes;
  if (bytes <= 0) return ok('a replica that has all the primary has');
  const found = `a replica, ${bytes} bytes and ${Math.round(there.seconds)} s behind`;
  if (there.seconds * 1000 <= (options.readMaxLag ?? 0)) return ok(found);
  return warning(found, 'it answers reads again when it is within READ_MAX_LAG_MS');
}

async function ask(url: string, options: DatabaseOptions) {
  const sessions = await findSessions(url, options);
  const server = new Server(poolWith({ ...sessions.config, max: 1 }), sessions);
  try {
    const position: Position = await positionOf(server.ask);
    const text = 'select extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())';
    const [[seconds] = []] = await server.ask({ name: 'doctor_lag', text }, []);
    return { position, seconds: Number(seconds ?? 0), isCitus: (await citusNode(server.ask)) !== 'none' };
  } finally {
    await server.pool.end();
  }
}

/** Where several nodes share the quotas. */
export async function lookAtRedis(url: string | undefined): Promise<Finding[]> {
  if (!url) return [];
  const remedy = 'until it can be used, each process counts quotas for itself';
  return [tolerable(await look(`Redis ${new URL(url).host}`, () => redis(url), remedy))];
}

async function redis(url: string): Promise<Result> {
  const { Redis } = await import('ioredis');
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2000,
    commandTimeout: 2000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The reason is here; the command would say only that the connection is closed.
  let reason: Error | undefined;
  client.on('error', (error) => {
    reason = error;
  });
  try {
    await client.connect();
    await client.ping();
    return ok('answers');
  } catch (error) {
    throw reason ?? error;
  } finally {
    client.disconnect();
  }
}
