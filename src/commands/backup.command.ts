import { Command } from 'commander';
import { interruption, json, Progress, rowsOf, show, withExamples } from './program.ts';

export function backupCommand(): Command {
  const command = new Command('backup')
    .description('write the embedded store to a file that `restore` reads; it may be in use')
    .argument('<file>', '`-` for standard output')
    .option('--force', 'overwrite the file')
    .option(...json)
    .action(async (file: string, flags: { force?: boolean; json?: boolean }) => {
      const { embeddedStore } = await import('./context.ts');
      const { backup } = await import('../backup/backup.ts');
      const { show: progress } = new Progress(process.stderr);
      const { options, model } = await embeddedStore(`pg_dump --format=custom --file=${file} "$DATABASE_URL"`);
      const signal = interruption();
      const result = await backup(file, options, model, { ...flags, signal, progress }).catch((error) => {
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
  return withExamples(
    command,
    'animal-store backup /backup/store.ndjson',
    'animal-store backup - | gzip > store.ndjson.gz',
  );
}
