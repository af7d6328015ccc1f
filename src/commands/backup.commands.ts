import type { Command } from 'commander';
import type { Contents } from '../backup/tables.ts';
import { interruption, json, Progress, show, table, withExamples } from './program.ts';

interface Flags {
  force?: boolean;
  json?: boolean;
}

/** Registers `backup`, `restore` and `promote`. Each loads its code when it runs. */
export function backupCommands(program: Command): void {
  const backing = program
    .command('backup')
    .description('write the embedded store to a file that `restore` reads; it may be in use')
    .argument('<file>', '`-` for standard output')
    .option('--force', 'overwrite the file')
    .option(...json)
    .action(async (file: string, flags: Flags) => {
      const { backup } = await import('../backup/backup.ts');
      const { options, model } = await embeddedStore(`pg_dump --format=custom --file=${file} "$DATABASE_URL"`);
      const signal = interruption();
      const result = await backup(file, options, model, { ...flags, progress, signal }).catch((error) => {
        // The process ends although the store may not answer.
        if (signal.aborted) process.exit();
        throw error;
      });
      const where = file === '-' ? 'standard output' : file;
      const text = `${rowsOf(result.tables)}\n${where}: ${result.bytes} bytes`;
      // Standard output may be the backup itself.
      if (file === '-') show(result, {}, text, process.stderr);
      else show({ file, ...result }, flags, text);
    });
  withExamples(backing, 'animal-store backup /backup/store.ndjson', 'animal-store backup - | gzip > store.ndjson.gz');

  program
    .command('restore')
    .description('read a backup into a new or empty embedded store')
    .argument('<file>', 'what `backup` has written')
    .option(...json)
    .action(async (file: string, flags: Flags) => {
      const { restore } = await import('../backup/backup.ts');
      const { options, model } = await embeddedStore(`pg_restore --dbname="$DATABASE_URL" ${file}`);
      const result = await restore(file, options, model, progress);
      await warn(result.tables);
      const migrated = result.applied.length > 0 ? `, and migrated: ${result.applied.join(', ')}` : '';
      show({ file, ...result }, flags, `${rowsOf(result.tables)}\nrestored and compared${migrated}`);
    });

  program
    .command('promote')
    .description('make the embedded store a PostgreSQL: copy everything there, compare, and retire the store')
    .argument('<url>', 'postgres://...; the password may be in PGPASSWORD or ~/.pgpass instead')
    .option(...json)
    .action(async (url: string, flags: Flags) => {
      const { configuredStore } = await import('./context.ts');
      const { promote } = await import('../backup/promote.ts');
      const others = { DATABASE_DIRECT_URL: '', DATABASE_READ_URLS: '' };
      const source = await configuredStore({ ...others, DATABASE_URL: '' });
      const target = await configuredStore({ ...others, DATABASE_URL: url });
      const result = await promote(source.options, { ...target.options, url }, source.model, progress);
      await warn(result.tables);
      const done = result.wasThere ? 'was copied before and is the same' : 'is the same';
      show(
        result,
        flags,
        `${rowsOf(result.tables)}\n${result.target} ${done}; start the service with DATABASE_URL now`,
      );
    });
}

const progress = new Progress(process.stderr).show;

/** @throws Error when DATABASE_URL is set */
async function embeddedStore(remedy: string) {
  const { configuredStore } = await import('./context.ts');
  const store = await configuredStore();
  if (!store.options.url) return store;
  throw new Error(`DATABASE_URL is set, and PostgreSQL has its own tools: ${remedy}`);
}

async function warn(contents: Contents[]): Promise<void> {
  const { warningsOf } = await import('../backup/tables.ts');
  for (const warning of warningsOf(contents)) process.stderr.write(`animal-store: ${warning}\n`);
}

function rowsOf(contents: Contents[]): string {
  return table(
    contents.map(({ table, rows, sha256 }) => ({ table, rows, sha256: sha256.slice(0, 16) })),
    '',
  );
}
