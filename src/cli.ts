#!/usr/bin/env node
import { Command } from 'commander';
import { loadConfig } from './config.ts';
import { emitContracts } from './contracts.ts';
import { Database } from './database/database.ts';
import { deprecationsCommand } from './deprecations/deprecations.command.ts';
import { DeprecationUsage } from './deprecations/usage.ts';
import { ApiKeyService } from './keys/api-key.service.ts';
import { keyCommands } from './keys/key.commands.ts';
import { modelOf } from './mikro-orm.config.ts';
import { modules } from './modules.ts';
import { startFailure } from './operations/start-failure.ts';

/** Operator commands. Results go to standard output, everything else to standard error. */
const program = new Command('animal-store').description('operate the animal store').showHelpAfterError();

const keys = keyCommands((work) => withDatabase((database) => work(new ApiKeyService(database))), console.log);
keys.addCommand(
  deprecationsCommand(
    (work) =>
      withDatabase((database) => work({ keys: new ApiKeyService(database), usage: new DeprecationUsage(database) })),
    console.log,
  ),
);
program.addCommand(keys);

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
  .action(({ check }: { check?: boolean }) => emitContracts(modules, 'schema', check === true));

/** @param always run migrations, even when the configuration leaves them to an operator. */
async function withDatabase(
  work: (database: Database, applied: string[]) => Promise<void>,
  always = false,
): Promise<void> {
  const { database: options, migrateOnStart } = loadConfig(process.env);
  const database = await Database.open(options, modelOf(modules));
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
