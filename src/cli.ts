#!/usr/bin/env node
import { Command, InvalidArgumentError } from 'commander';
import { backupCommands } from './backup/backup.commands.ts';
import { deprecationsCommand } from './deprecations/deprecations.command.ts';
import { keyCommands } from './keys/key.commands.ts';
import { startFailure } from './operations/start-failure.ts';
import type { Desk } from './operator.ts';

/** Operator commands. Results go to standard output, everything else to standard error. */
const program = new Command('animal-store').description('operate the animal store').showHelpAfterError();

/** Loads the service when a command runs: help, and what is wrong with arguments, come at once. */
async function withDesk(work: (desk: Desk) => Promise<void>, always?: boolean): Promise<void> {
  const { atDesk } = await import('./operator.ts');
  await atDesk(work, always);
}

const keys = keyCommands((work) => withDesk(({ keys }) => work(keys)), console.log);
keys.addCommand(deprecationsCommand(withDesk, console.log));
program.addCommand(keys);

program
  .command('migrate')
  .description('apply pending migrations')
  .action(() =>
    withDesk(async ({ applied }) => {
      console.log(applied.length > 0 ? `applied: ${applied.join(', ')}` : 'the database is up to date');
    }, true),
  );

program
  .command('distribute')
  .description('migrate, and turn the tables into tables of a Citus cluster; shared tables become reference tables')
  .option('--reference', 'whole on every node: each node answers reads by itself')
  .option('--shards <n>', 'by id, over n shards on the workers: for what one machine does not hold', shardsFrom)
  .action(async ({ reference, shards }: { reference?: true; shards?: number }) => {
    const layout = reference ? 'reference' : shards;
    if (layout === undefined || (reference && shards)) throw new Error('Give either --reference or --shards <n>.');
    const { distributeTables } = await import('./operator.ts');
    for (const line of await distributeTables(layout)) console.log(line);
  });

backupCommands(program, async () => (await import('./operator.ts')).backupWork(), {
  print: console.log,
  note: console.error,
});

program
  .command('schema')
  .description('write the contracts as served to schema/')
  .option('--check', 'only compare with what is there')
  .action(async ({ check }: { check?: boolean }) => {
    const [{ emitContracts }, { modules }] = await Promise.all([import('./contracts.ts'), import('./modules.ts')]);
    await emitContracts(modules, 'schema', check === true);
  });

function shardsFrom(text: string): number {
  // Citus takes up to 64,000, and refuses more.
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('A whole number of shards, at least 1.');
  return Number(text);
}

program.parseAsync().catch((error: unknown) => {
  console.error(`animal-store: ${startFailure(error)}`);
  process.exitCode = 1;
});
