#!/usr/bin/env node
import { Command } from 'commander';
import { backupCommands } from './commands/backup/backup.commands.ts';
import { benchCommand } from './commands/bench.command.ts';
import { completionCommand } from './commands/completion.command.ts';
import { dataCommands } from './commands/data/data.commands.ts';
import { databaseCommands } from './commands/database.commands.ts';
import { deprecationsCommand } from './commands/deprecations.command.ts';
import { doctorCommand } from './commands/doctor/doctor.command.ts';
import { helpCommand } from './commands/help.command.ts';
import { keyCommands } from './commands/key.commands.ts';
import type { Desk } from './commands/operator.ts';
import { schemaCommand } from './commands/schema.command.ts';
import { startCommand } from './commands/start.command.ts';
import { runProgram, withExamples } from './commands/terminal/program.ts';
import { variables } from './config.ts';
import { startFailure } from './start-failure.ts';
import { assertNode, releasedVersion } from './version.ts';

/** The table of contents of the command line. Each command is in the room of what it does. */
const program = new Command('animal-store')
  .description('The animal store: run it, and look after it.')
  .version(releasedVersion(), '-V, --version', 'print the version');
withExamples(
  program,
  'animal-store start',
  'animal-store keys issue --name shop-frontend --scope read --expires 90d',
  'animal-store doctor',
  'animal-store help keys issue',
).addHelpText(
  'after',
  '\nCommands work on the store that DATABASE_URL or DATA_DIR names; `animal-store start --help` lists all variables.' +
    '\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 lines of a file were refused.',
);

const output = { print: console.log, note: console.error };

/** Loads the service when a command runs: help, and what is wrong with arguments, come at once. */
async function withDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  const { atDesk } = await import('./commands/operator.ts');
  await atDesk(work);
}

program.commandsGroup('The service:');
program.addCommand(
  startCommand(variables, async (given) => {
    Object.assign(process.env, given);
    await import('./main.ts');
  }),
);
program.addCommand(
  doctorCommand(async () => (await import('./commands/doctor/doctor.ts')).examine(process.env), output),
);
program.addCommand(benchCommand(output));

program.commandsGroup('Keys:');
const keys = keyCommands((work) => withDesk(({ keys }) => work(keys)), console.log);
keys.addCommand(deprecationsCommand(withDesk, console.log));
program.addCommand(keys);

program.commandsGroup('The database:');
const databaseWork = {
  migrate: async () => (await import('./commands/operator.ts')).migrateDatabase(),
  distribute: async (layout: 'reference' | number) => (await import('./commands/operator.ts')).distributeTables(layout),
};
for (const command of databaseCommands(databaseWork, output)) program.addCommand(command);
backupCommands(program, async () => (await import('./commands/operator.ts')).backupWork(), output);

program.commandsGroup('Data:');
dataCommands(program, async () => (await import('./commands/operator.ts')).dataWork(), output);

program.commandsGroup('Tools:');
program.addCommand(
  schemaCommand(async (check) => {
    const [{ emitContracts }, { modules }] = await Promise.all([import('./contracts.ts'), import('./modules.ts')]);
    await emitContracts(modules, 'schema', check);
  }),
);
program.addCommand(completionCommand(program, output));
program.helpCommand(false).addCommand(helpCommand(program));

await runProgram(program, { before: assertNode, explain: startFailure });
