import type { Command } from 'commander';
import {
  interruption,
  json,
  Progress,
  show,
  table,
  withExamples,
} from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import type { Contents } from './tables.ts';

interface BackupFlags {
  json?: boolean;
  force?: boolean;
  retire?: boolean;
}

/** Each loads its code when it runs, so help and usage errors come at once. */
export function backupCommands(program: Command, stores: Stores) {
  program.commandsGroup('The database:');
  const backingUp = program
    .command('backup')
    .description(
      'write the embedded store to a file that `restore` reads; it may be in use',
    )
    .argument('<file>', '`-` for standard output')
    .option('--force', 'overwrite the file')
    .option('--retire', 'mark the store as moved; nothing may use it')
    .option(...json)
    .action(async (file: string, flags: BackupFlags) => {
      const { backUp } = await import('./backup.ts');
      const { show: progress } = new Progress(process.stderr);
      const { options, model } = await stores.configuredStore();
      if (options.url)
        throw new Error(
          `DATABASE_URL is set, and PostgreSQL has its own tool: pg_dump --format=custom --file=${file} "$DATABASE_URL"`,
        );
      const signal = interruption();
      const result = await backUp(file, options, model, {
        ...flags,
        signal,
        progress,
      }).catch((error) => {
        // The process ends even if the store does not answer.
        if (signal.aborted) process.exit();
        throw error;
      });
      const where = file === '-' ? 'standard output' : file;
      const text = `${contentsTable(result.tables)}\n${where}: ${result.bytes} bytes`;
      // Standard output may be the backup itself.
      const stream = file === '-' ? process.stderr : process.stdout;
      show({ file, ...result }, flags, text, stream);
    });
  withExamples(
    backingUp,
    `${program.name()} backup /backup/store.ndjson`,
    `${program.name()} backup - | gzip > store.ndjson.gz`,
  );

  program
    .command('restore')
    .description(
      'read a backup into a new or empty store, also into the PostgreSQL in DATABASE_URL',
    )
    .argument('<file>', 'what `backup` has written')
    .option(...json)
    .action(async (file: string, flags: BackupFlags) => {
      const { restore } = await import('./backup.ts');
      const { show: progress } = new Progress(process.stderr);
      const { options, model } = await stores.configuredStore();
      const result = await restore(file, options, model, progress);
      let done = `${contentsTable(result.tables)}\nrestored and compared`;
      if (result.applied.length > 0)
        done += `, and migrated: ${result.applied.join(', ')}`;
      show({ file, ...result }, flags, done);
    });
}

function contentsTable(contents: Contents[]) {
  const rows = contents.map(({ table, rows, sha256 }) => ({
    table,
    rows,
    sha256: sha256.slice(0, 16),
  }));
  return table(rows, '');
}
