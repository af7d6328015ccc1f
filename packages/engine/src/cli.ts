import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { doctorCommand } from './commands/doctor.ts';
import { keyCommands } from './commands/keys.commands.ts';
import { migrateCommand } from './commands/migrate.command.ts';
import { runProgram, startFlag, withExamples } from './commands/program.ts';
import { allVariables, manifestOf, prepareNode } from './config/config.ts';
import { envFileVariable, readEnvFile } from './config/env-file.ts';
import type { Variable } from './config/variables.ts';
import { collectImportFaults } from './errors.ts';
import { complete, type Service, type Stores } from './feature.ts';

/**
 * Runs the command that the arguments name. Each loads the service when it runs: help and usage
 * errors come at once.
 *
 * @param startService runs the program that serves
 */
export async function run(
  listed: Service,
  startService: () => Promise<unknown>,
) {
  const service = complete(listed);
  const { name, about, url } = service;
  const program = new Command(name)
    .description(`${about.title}: run it, and administer it.`)
    .version(manifestOf(url).version, '-V, --version', 'print the version');
  withExamples(
    program,
    `${name} start`,
    `${name} keys issue --name shop-frontend --scope read --expires 90d`,
    `${name} doctor`,
  ).addHelpText(
    'after',
    `\nCommands work on the configured store; \`${name} start --help\` lists all variables.` +
      '\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 lines of a file were refused.',
  );

  program.commandsGroup('The service:');
  const start = program
    .command('start')
    .description('serve REST and GraphQL, until SIGTERM or Ctrl-C')
    .action(async () => {
      await startService();
    });
  startFlag(program, '--port <port>', 'PORT');
  startFlag(program, '--host <address>', 'HOST');
  withExamples(
    start,
    `${name} start --port 5000`,
    `DATABASE_URL=postgres://user@db.example/database ${name} start`,
  ).addHelpText(
    'after',
    () =>
      `\nEnvironment:\n${Object.entries(allVariables(service.features)).map(describe).join('\n')}`,
  );
  doctorCommand(program, service);

  program.commandsGroup('Keys:');
  keyCommands(program, service);

  program.commandsGroup('The database:');
  migrateCommand(program, service);

  const stores: Stores = {
    async configuredStore() {
      const { configuredStore } = await import('./commands/context.ts');
      return configuredStore(service);
    },
    async withDatabase(work) {
      const { withDatabase } = await import('./commands/context.ts');
      return withDatabase(service, work);
    },
  };
  for (const { commands } of service.features)
    await commands?.(program, stores);

  program
    .commandsGroup('Tools:')
    .command('schema')
    .description('write the served contracts (OpenAPI, SDL) to schema/')
    .option('--check', 'only compare them with the files')
    .action(async (flags: { check?: boolean }) => {
      const { emitContracts } = await import('./commands/contracts.ts');
      await emitContracts(service, flags);
    });

  await runProgram(program, () => prepare(service));
}

/**
 * Reads `.env`. Environment variables take precedence. The start and `doctor`
 * print its path.
 */
function prepare(service: Service) {
  prepareNode(service);
  collectImportFaults();
  const variable = envFileVariable(service.name);
  const named = process.env[variable];
  // Empty disables `.env`, so that tests do not read a developer's.
  if (named === '' || (named === undefined && !existsSync('.env'))) return;
  const file = resolve(named ?? '.env');
  for (const [name, value] of Object.entries(readEnvFile(file)))
    process.env[name] ??= value;
  process.env[variable] = file;
}

function describe([name, { desc, default: value, takes }]: [
  string,
  Variable<unknown>,
]) {
  const choices = takes.startsWith('`')
    ? ` One of ${takes.replace(/` `/g, ', ').replaceAll('`', '')}.`
    : '';
  return `  ${name.padEnd(30)} ${desc}${choices}${value === undefined || `${value}` === '' ? '' : ` (${value})`}`;
}
