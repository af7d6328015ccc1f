#!/usr/bin/env node
import { Command } from 'commander';
import { loadConfig } from './config.ts';
import { Database } from './database/database.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { keyCommands } from './keys/key.commands.ts';
import { KeyActivity } from './keys/key-activity.ts';
import { emitContracts } from './operations/contracts.ts';
import { startFailure } from './operations/start-failure.ts';

/** Operator commands. Results go to standard output, everything else to standard error. */
const program = new Command('animal-store').description('operate the animal store').showHelpAfterError();

program.addCommand(
  keyCommands(
    (work) =>
      withDatabase(async (database) =>
        work({ keys: new ApiKeyService(database), activity: new KeyActivity(database) }),
      ),
    console.log,
  ),
);

program
  .command('migrate')
  .description('apply pending migrations')
  .action(() =>
    withDatabase(async (_database, applied) => {
      console.log(applied.length > 0 ? `applied: ${applied.join(', ')}` : 'the database is up to date');
    }, true),
  );

program
  .command('schema')
  .description('write the contracts as served to schema/')
  .option('--check', 'only compare with what is there')
  .action(({ check }: { check?: boolean }) => emitContracts('schema', check === true));

/** @param always migrate, even when the configuration leaves that to an operator. */
async function withDatabase(
  work: (database: Database, applied: string[]) => Promise<void>,
  always = false,
): Promise<void> {
  const { database: options, migrateOnStart } = loadConfig(process.env);
  const database = await Database.open(options);
  try {
    await database.reach();
    await work(database, always || migrateOnStart ? await database.migrate() : []);
  } finally {
    await database.close();
  }
}

program.parseAsync().catch((error: unknown) => {
  console.error(`animal-store: ${startFailure(error)}`);
  process.exitCode = 1;
});
