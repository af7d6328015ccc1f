import { existsSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadConfig } from '../config/config.ts';
import { Database } from '../database/database.ts';
import { startFailure } from '../process/start-failure.ts';
import { configuredStore } from './context.ts';

export interface Finding {
  check: string;
  /** `warning`: the service works, but not as configured. `failure`: it does not start or does not serve. */
  state: 'ok' | 'warning' | 'failure';
  found: string;
  remedy?: string;
}

/** Checks the configuration, the database and the disk. It migrates nothing and creates no store. */
export async function examine(): Promise<Finding[]> {
  const findings: Finding[] = [];
  const isFine = (check: string, found: string) => findings.push({ check, state: 'ok', found });
  /** @param work adds a finding when it succeeds; an error becomes a finding here */
  async function check(check: string, remedy: string, work: () => unknown, state: Finding['state'] = 'failure') {
    try {
      await work();
    } catch (error) {
      findings.push({ check, state, found: startFailure(error), remedy });
    }
  }

  const { ANIMAL_STORE_ENV_FILE: envFile } = process.env;
  const configuration = envFile ? `configuration (${envFile})` : 'configuration';
  await check(configuration, 'see docs/configuration.md', () => {
    loadConfig(process.env);
    isFine(configuration, 'usable');
  });
  if (findings[0]?.state !== 'ok') return findings;
  const { config, model, ...store } = await configuredStore();
  // The findings replace the log.
  const options = { ...store.options, log: undefined };
  const { url, dataDir, readUrls = [], readMaxLag } = config.database;
  if (!url) await check('disk', 'free space, or choose another DATA_DIR', () => isFine('disk', spaceIn(dataDir)));
  if (!url && !existsSync(join(dataDir, 'postgres', 'PG_VERSION'))) {
    isFine('database', `${dataDir} has no store yet: the first start creates it`);
    return findings;
  }

  const checkTables = async (database: Database) => {
    await database.ping();
    isFine('database', 'usable');
    const pending = await database.pending();
    if (pending.length > 0) {
      const state = config.migrateOnStart ? 'warning' : 'failure';
      const found = `not applied: ${pending.join(', ')}`;
      findings.push({ check: 'migrations', state, found, remedy: 'animal-store migrate' });
      return;
    }
    isFine('migrations', 'all are applied');
    const remedy = 'animal-store migrate; DATABASE_URL must lead to the primary, with a role that may write';
    await check('tables', remedy, async () => {
      await database.assertReady();
      isFine('tables', 'readable and writable, ids beyond all rows');
    });
  };
  const start = url ? 'start the server, or correct DATABASE_URL' : 'see docs/move.md and docs/runbook.md';
  await check('database', start, () => Database.use(options, model, checkTables));

  for (const node of readUrls) {
    const name = `read node ${new URL(node).host}`;
    const remedy = 'start the node, or remove it from DATABASE_READ_URLS; until then the primary answers its reads';
    const checkLag = async (database: Database) => {
      const [[lag] = []] = await database.rows<[string | null]>({ name: 'replica_lag', text: replicaLag }, []);
      if (Number(lag) > readMaxLag) throw new Error(`${lag} ms behind, more than READ_MAX_LAG_MS`);
      isFine(name, `${Number(lag)} ms behind`);
    };
    await check(name, remedy, () => Database.use({ ...options, url: node }, model, checkLag), 'warning');
  }
  return findings;
}

/** Milliseconds; 0 on a primary. */
const replicaLag = `
  select case when pg_is_in_recovery() and pg_last_wal_receive_lsn() <> pg_last_wal_replay_lsn()
    then ceil(extract(epoch from now() - pg_last_xact_replay_timestamp()) * 1000) else 0 end`;

/** Minimum free space (bytes). */
const leastSpace = 256 * 2 ** 20;

/** @throws Error when the space is insufficient */
function spaceIn(dataDir: string): string {
  const nearest = (folder: string): string => (existsSync(folder) ? folder : nearest(dirname(folder)));
  const { bavail, bsize } = statfsSync(nearest(resolve(dataDir)));
  const found = `${Math.floor((bavail * bsize) / 2 ** 20)} MiB free in ${dataDir}`;
  if (bavail * bsize < leastSpace) throw new Error(`only ${found}`);
  return found;
}
