import { Command } from 'commander';
import { exitCodes, json, show } from './program.ts';

interface Flags {
  json?: boolean;
}

/** Creates `migrate`, which applies pending migrations. */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description('apply pending migrations; nodes of the previous release may serve meanwhile')
    .option(...json)
    .action(async (flags: Flags) => {
      const { applyMigrations } = await import('./context.ts');
      const applied = await applyMigrations();
      show({ applied }, flags, applied.length > 0 ? `applied: ${applied.join(', ')}` : 'the database is up to date');
    });
}

/** Creates `doctor`, which checks the configuration, the database and the disk. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check the configuration, the database and the disk, and say what to do; the service may run')
    .option(...json)
    .action(async (flags: Flags) => {
      const { examine } = await import('./doctor.ts');
      const findings = await examine();
      const lines = findings.map(({ check, state, found, remedy }) => {
        const line = `${state.padEnd(8)} ${check.padEnd(14)} ${found.replaceAll('\n', '\n  ')}`;
        return remedy ? `${line}\n         -> ${remedy}` : line;
      });
      const count = (wanted: string) => findings.filter(({ state }) => state === wanted).length;
      const [failures, warnings] = [count('failure'), count('warning')];
      show(
        { failures, warnings, findings },
        flags,
        `${lines.join('\n')}\nfailures: ${failures}, warnings: ${warnings}`,
      );
      if (failures > 0) process.exitCode = exitCodes.failed;
    });
}

/** Creates `schema`, which updates the contracts in the repository, for developers. */
export function schemaCommand(): Command {
  return new Command('schema')
    .description('write the served contracts (OpenAPI, SDL) to schema/, and docs/configuration.md')
    .option('--check', 'only compare them with the files')
    .action(async ({ check = false }: { check?: boolean }) => {
      const [{ emitContracts }, { modules }] = await Promise.all([
        import('./contracts.ts'),
        import('../modules/modules.ts'),
      ]);
      await emitContracts(modules, 'schema', check);
    });
}
