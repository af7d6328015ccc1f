import { existsSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Config, loadConfig } from '../config.ts';
import { modelOf } from '../mikro-orm.config.ts';
import { modules } from '../modules.ts';
import { startFailure } from '../start-failure.ts';
import { Database } from '../storage/database/database.ts';

export interface Finding {
  check: string;
  /** `warning`: the service works, but not as configured. `failure`: it does not start or does not serve. */
  state: 'ok' | 'warning' | 'failure';
  found: string;
  /** What to do about it. */
  remedy?: string;
}

/** Checks what the service needs. It migrates nothing and creates no store. */
export async function examine(env: Record<string, string | undefined>): Promise<Finding[]> {
  const findings: Finding[] = [];
  /** @param work returns what it needs for the next check, or a sentence about what it has found */
  async function check<T>(check: string, remedy: string, work: () => T, state: Finding['state'] = 'failure') {
    try {
      const result = await work();
      findings.push({ check, state: 'ok', found: typeof result === 'string' ? result : 'usable' });
      return result;
    } catch (error) {
      findings.push({ check, state, found: startFailure(error), remedy });
      return undefined;
    }
  }

  const { ANIMAL_STORE_ENV_FILE: envFile } = env;
  const from = envFile ? `configuration (${envFile})` : 'configuration';
  const config = await check(from, 'see docs/configuration.md', () => loadConfig(env));
  if (!config) return findings;
  const { url, dataDir, readUrls = [] } = config.database;
  if (!url) await check('disk', 'free space, or choose another DATA_DIR', () => assertSpace(dataDir));
  if (!url && !existsSync(join(dataDir, 'postgres', 'PG_VERSION'))) {
    await check('database', '', () => `${dataDir} has no store yet: the first start creates it`);
    return findings;
  }
  const start = url ? 'start the server, or correct DATABASE_URL' : 'see docs/move.md and docs/runbook.md';
  const database = await check('database', start, () => reach(config));
  if (!database) return findings;
  try {
    const assertMigrated = async () => {
      const pending = await database.pending();
      if (pending.length > 0) throw new Error(`not applied: ${pending.join(', ')}`);
      return 'all are applied';
    };
    const assertReady = () => database.assertReady().then(() => 'readable and writable, ids beyond all rows');
    const unapplied = config.migrateOnStart ? 'warning' : 'failure';
    if (await check('migrations', 'animal-store migrate', assertMigrated, unapplied)) {
      const remedy = 'animal-store migrate; DATABASE_URL must lead to the primary, with a role that may write';
      await check('tables', remedy, assertReady);
    }
  } finally {
    await database.close();
  }
  for (const node of readUrls) {
    const remedy = 'start the node, or remove it from DATABASE_READ_URLS; until then the primary answers its reads';
    await check(`read node ${new URL(node).host}`, remedy, () => assertRecent(config, node), 'warning');
  }
  return findings;
}

/** @throws Error when the database cannot be reached */
async function reach({ database: options }: Config, url = options.url): Promise<Database> {
  const database = await Database.open({ ...options, url, readUrls: undefined }, modelOf(modules));
  try {
    await database.reach();
    await database.ping();
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Compares the lag of a replica with READ_MAX_LAG_MS. A node that is no replica has none. */
async function assertRecent(config: Config, node: string): Promise<string> {
  const database = await reach(config, node);
  const text = `select case when pg_is_in_recovery() and pg_last_wal_receive_lsn() <> pg_last_wal_replay_lsn()
    then ceil(extract(epoch from now() - pg_last_xact_replay_timestamp()) * 1000) else 0 end`;
  const answer = database.rows<[string | null]>({ name: 'replica_lag', text }, []);
  const [[lag] = []] = await answer.finally(() => database.close());
  if (Number(lag) > config.database.readMaxLag) throw new Error(`${lag} ms behind, more than READ_MAX_LAG_MS`);
  return `${Number(lag)} ms behind`;
}

/** With less space (bytes) creations fail soon. */
const leastSpace = 256 * 2 ** 20;

function assertSpace(dataDir: string): string {
  const nearest = (folder: string): string => (existsSync(folder) ? folder : nearest(dirname(folder)));
  const { bavail, bsize } = statfsSync(nearest(resolve(dataDir)));
  const found = `${Math.floor((bavail * bsize) / 2 ** 20)} MiB free in ${dataDir}`;
  if (bavail * bsize < leastSpace) throw new Error(`only ${found}`);
  return found;
}
