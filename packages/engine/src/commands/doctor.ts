import type { Command } from 'commander';
import { envFileVariable } from '../config/env-file.ts';
import type { Database } from '../database/database.ts';
import { localeRemedy } from '../database/locale.ts';
import { codeOf } from '../database/postgres-errors.ts';
import {
  type ConfiguredStore,
  closedRows,
  type DoctorCheck,
  type Service,
} from '../feature.ts';
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

export function doctorCommand(program: Command, service: Service) {
  program
    .command('doctor')
    .description(
      'check the configuration, the database and the disk, and say what to do; the service may run',
    )
    .option(...json)
    .action(async (flags: { json?: boolean }) => {
      const findings = await examine(service);
      const lines = findings.map(({ check, state, found, remedy }) => {
        const line = `${state.padEnd(8)} ${check.padEnd(14)} ${found.replaceAll('\n', '\n  ')}`;
        if (!remedy) return line;
        return `${line}\n         -> ${remedy}`;
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
 * Checks the configuration, the features and the database. It migrates nothing
 * and creates no store.
 */
async function examine(service: Service) {
  const { features } = service;
  const findings: Finding[] = [];
  /** @returns false when it fails */
  async function check({ name, state = 'failure', remedy, run }: DoctorCheck) {
    const finding: Finding = { check: name, state: 'ok', found: '' };
    findings.push(finding);
    try {
      finding.found = await run();
      return true;
    } catch (error) {
      const known = remedies[codeOf((error as Error).cause ?? {}) ?? ''];
      const found = startFailure(error);
      Object.assign(finding, { state, found, remedy: known ?? remedy });
      return false;
    }
  }

  function warn(
    check: string,
    found: string | null | undefined,
    remedy: string,
  ) {
    if (found) findings.push({ check, state: 'warning', found, remedy });
  }

  // Loaded here, so that help and usage errors come at once.
  const [{ Database }, { configuredStore }, { openModules }] =
    await Promise.all([
      import('../database/database.ts'),
      import('./context.ts'),
      import('../api/module.ts'),
    ]);
  const envFile = process.env[envFileVariable(service.name)];
  let configured: ConfiguredStore | undefined;
  await check({
    name: envFile ? `configuration (${envFile})` : 'configuration',
    remedy: 'see docs/configuration.md',
    async run() {
      configured = await configuredStore(service);
      return 'usable';
    },
  });
  if (!configured) return findings;
  const { config, model, modules } = configured;
  const { misspelt, values, migrateOnStart } = config;
  for (const found of misspelt)
    warn('variables', found, 'correct the name, or remove the variable');
  const areSound = await check({
    name: 'modules',
    remedy: 'see docs/add-a-module.md',
    async run() {
      const { contracts } = await import('../process/contracts.ts');
      await contracts(service, process.env);
      return 'usable';
    },
  });
  // The findings replace the log.
  const options = { ...configured.options, log: undefined };
  const store = { ...configured, options };
  for (const { checks } of features) {
    for (const one of checks?.({ config, values }, store) ?? [])
      await check(one);
  }
  const { ownStore } = options;
  if (ownStore?.exists() === false) {
    const found = `${ownStore.name} has no store yet: the first start creates it`;
    findings.push({ check: 'database', state: 'ok', found });
    return findings;
  }

  const examineTables = async (database: Database) => {
    await database.ping();
    const pending = await database.pending();
    const isMigrated = await check({
      name: 'migrations',
      state: migrateOnStart ? 'warning' : 'failure',
      remedy: `${service.name} migrate`,
      async run() {
        if (pending.length === 0) return 'all are applied';
        throw new Error(`not applied: ${pending.join(', ')}`);
      },
    });
    if (!isMigrated) return 'usable';
    await check({
      name: 'tables',
      remedy: `${service.name} migrate; DATABASE_URL must lead to the primary, with a role that may write`,
      async run() {
        await database.assertColumns();
        await database.assertReady();
        const { rights, indexes, keys } = await database.examine();
        warn('missing rights', rights, 'grant them to the role');
        warn('missing indexes', indexes, 'create them anew, as migrations do');
        warn('missing keys', keys, 'write a migration: docs/add-a-module.md');
        return 'readable and writable, ids beyond all rows';
      },
    });
    if (areSound) openModules(modules, database, values);
    const closed = closedRows(service, config, database);
    warn('tenants', closed, 'see docs/frontends.md');
    warn('locale', await database.localeDifference(), localeRemedy);
    return 'usable';
  };
  await check({
    name: 'database',
    remedy: config.database.url
      ? 'start the server, or correct DATABASE_URL'
      : 'see docs/move.md and docs/runbook.md',
    run: () => Database.use(options, model, examineTables),
  });
  return findings;
}

const waits =
  'a statement waits for a lock, or is slow: docs/runbook.md#animalstorequeueold';
/** By PostgreSQL's codes. */
const remedies: Record<string, string> = {
  '42P01': 'create the tables: `migrate`, or a start',
  '57014': waits,
  '55P03': waits,
  '53100': 'free space on the disk of PostgreSQL: until then creations get 503',
  '53300': 'free connections: docs/runbook.md#animalstorepoolusedup',
};
