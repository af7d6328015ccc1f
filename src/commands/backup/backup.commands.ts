import type { Command } from 'commander';
import { type Progress, progressOn, show, table, withExamples } from '../program.ts';
import type { Backup } from './backup.ts';
import type { Promotion } from './promote.ts';
import type { Tally } from './rows.ts';

/** What the commands do, with the configured store. */
export interface BackupWork {
  backup(file: string, force: boolean, progress: Progress): Promise<Backup>;
  /** @returns also the migrations that the backup lacked */
  restore(file: string, progress: Progress): Promise<{ tables: Tally[]; applied: string[] }>;
  promote(url: string, progress: Progress): Promise<Promotion>;
}

/** `backup`, `restore` and `promote`: parse, call, print. */
export function backupCommands(program: Command, open: () => Promise<BackupWork>): void {
  const backup = program
    .command('backup')
    .description('write the embedded store to a file that psql and `restore` read; it may be in use')
    .argument('<file>', '`-` for standard output')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON, and nothing else')
    .action(async (file: string, { force = false, json }: { force?: boolean; json?: boolean }) => {
      const { backup } = await open();
      const result = await backup(file, force, progressOn(process.stderr));
      const where = file === '-' ? 'standard output' : file;
      const text = `${rowsOf(result.tables)}\n${where}: ${result.bytes} bytes; requests waited ${result.heldMs} ms`;
      // Standard output may be the backup itself.
      show({ file, ...result }, { json: json && file !== '-' }, text, file === '-' ? process.stderr : process.stdout);
    });
  withExamples(backup, 'animal-store backup /backup/store.sql', 'animal-store backup - | gzip > store.sql.gz');

  const restore = program
    .command('restore')
    .description('read a backup into a new or empty embedded store')
    .argument('<file>', 'what `backup` has written')
    .option('--json', 'print JSON, and nothing else')
    .action(async (file: string, { json }: { json?: boolean }) => {
      const { restore } = await open();
      const result = await restore(file, progressOn(process.stderr));
      const migrated = result.applied.length > 0 ? `, and migrated: ${result.applied.join(', ')}` : '';
      show({ file, ...result }, { json }, `${rowsOf(result.tables)}\nrestored and compared${migrated}`);
    });
  withExamples(restore, 'DATA_DIR=/var/lib/another animal-store restore /backup/store.sql');

  const promote = program
    .command('promote')
    .description('make the embedded store a PostgreSQL: copy everything there, compare, and retire the store')
    .argument('<url>', 'postgres://...; the password may be in PGPASSWORD or ~/.pgpass instead')
    .option('--json', 'print JSON, and nothing else')
    .action(async (url: string, { json }: { json?: boolean }) => {
      const { promote } = await open();
      const result = await promote(url, progressOn(process.stderr));
      const done = result.wasThere ? 'was there already, and is the same' : 'is the same';
      show(
        result,
        { json },
        `${rowsOf(result.tables)}\n${result.target} ${done}; start the service with DATABASE_URL now`,
      );
    });
  withExamples(promote, 'PGPASSWORD=... animal-store promote postgres://store@db.example/store');
}

function rowsOf(tallies: Tally[]): string {
  return table(
    tallies.map((tally) => ({ ...tally, sha256: tally.sha256.slice(0, 16) })),
    'There are no tables.',
  );
}
