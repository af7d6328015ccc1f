import type { Command } from 'commander';
import type { Database } from '../database/database.ts';

import { codeOf } from '../database/postgres-errors.ts';
import { features } from '../features.ts';
import { startFailure } from '../process/start-failure.ts';
import { exitCodes, json, show } from './program.ts';

interface Finding {
  check: string;
  /**
   * `warning`: the service works, but not as configured. `failure`: it does not
   * start or does not serve.
   */
  state: 'ok' | 'warning' | 'failure';
  found: string;
  remedy?: string;
}

export function doctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'check the configuration, the database and the disk, and say what to do; the service may run',
    )
    .option(...json)
    .action(async (flags: { json?: boolean }) => {
      const findings = await examine();
      const lines = findings.map(({ check, state, found, remedy }) => {
        const line = `${state.padEnd(8)} ${check.padEnd(14)} ${found.replaceAll('\n', '\n  ')}`;
        return remedy ? `${line}\n         -> ${remedy}` : line;
      });
      const count = (wanted: string) =>
        findings.filter(({ state }) => state === wanted).length;
      const [failures, warnings] = [count('failure'), count('warning')];
      show(
        { failures, warnings, findings },
        flags,
        `${lines.join('\n')}\nfailures: ${failures}, warnings: ${warnings}`,
      );
      if (failures > 0) process.exitCode = exitCodes.failed;
    });
}

/**
 * Checks the configuration, the database and the disk. It migrates nothing and
 * creates no store.
 */
async function examine(): Promise<Finding[]> {
  const findings: Finding[] = [];
  const isFine = (check: string, found: string) =>
    findings.push({ check, state: 'ok', found });
  /**
   * @param work adds a finding when it succeeds; an error becomes a finding
   *   here
   */
  async function check(
    check: string,
    remedy: string,
    work: () => unknown,
    state: Finding['state'] = 'failure',
  ) {
    try {
      await work();
    } catch (error) {
      const known = remedies[codeOf((error as Error).cause ?? {}) ?? ''];
      const found = startFailure(error);
      findings.push({ check, state, found, remedy: known ?? remedy });
    }
  }

  const { ANIMAL_STORE_ENV_FILE: envFile } = process.env;
  const configuration = envFile
    ? `configuration (${envFile})`
    : 'configuration';
  // Loaded here, so that help and usage errors come at once.
  const [{ Database }, { configuredStore }] = await Promise.all([
    import('../database/database.ts'),
    import('./context.ts'),
  ]);
  let configured: Awaited<ReturnType<typeof configuredStore>> | undefined;
  await check(configuration, 'see docs/configuration.md', async () => {
    configured = await configuredStore();
    isFine(configuration, 'usable');
  });
  if (!configured) return findings;
  const { config, model, ...store } = configured;
  for (const found of config.misspelt) {
    const remedy = 'correct the name, or remove the variable';
    findings.push({ check: 'variables', state: 'warning', found, remedy });
  }
  // The findings replace the log.
  const options = { ...store.options, log: undefined };
  const { url } = config.database;
  await check('modules', 'see docs/add-a-module.md', async () => {
    const { contracts } = await import('../process/contracts.ts');
    const { modules } = await import('../modules/modules.ts');
    await contracts(modules, process.env);
  });
  const { values } = config;
  for (const { checks } of features) {
    const own = checks?.({ config, values }, configured) ?? [];
    for (const { name, remedy, state, run } of own)
      await check(name, remedy, async () => isFine(name, await run()), state);
  }
  const { ownStore } = options;
  if (ownStore?.exists() === false) {
    isFine(
      'database',
      `${ownStore.name} has no store yet: the first start creates it`,
    );
    return findings;
  }

  const checkTables = async (database: Database) => {
    await database.ping();
    isFine('database', 'usable');
    const pending = await database.pending();
    if (pending.length > 0) {
      const state = config.migrateOnStart ? 'warning' : 'failure';
      const found = `not applied: ${pending.join(', ')}`;
      findings.push({
        check: 'migrations',
        state,
        found,
        remedy: 'animal-store migrate',
      });
      return;
    }
    isFine('migrations', 'all are applied');
    const remedy =
      'animal-store migrate; DATABASE_URL must lead to the primary, with a role that may write';
    await check('tables', remedy, async () => {
      await database.assertColumns();
      await database.assertReady();
      isFine('tables', 'readable and writable, ids beyond all rows');
    });
  };
  const start = url
    ? 'start the server, or correct DATABASE_URL'
    : 'see docs/move.md and docs/runbook.md';
  await check('database', start, () =>
    Database.use(options, model, checkTables),
  );

  return findings;
}

const waits =
  'a statement waits for a lock, or is slow: docs/runbook.md#animalstorequeueold';
/** By PostgreSQL's codes. */
const remedies: Record<string, string> = {
  '57014': waits,
  '55P03': waits,
  '53300': 'free connections: docs/runbook.md#animalstorepoolusedup',
};
