import { Command } from 'commander';
import { json, Progress, rowsOf, show } from './program.ts';

export function restoreCommand(): Command {
  return new Command('restore')
    .description('read a backup into a new or empty embedded store')
    .argument('<file>', 'what `backup` has written')
    .option(...json)
    .action(async (file: string, flags: { json?: boolean }) => {
      const { embeddedStore, warn } = await import('./context.ts');
      const { restore } = await import('../backup/backup.ts');
      const { show: progress } = new Progress(process.stderr);
      const { options, model } = await embeddedStore(`pg_restore --dbname="$DATABASE_URL" ${file}`);
      const result = await restore(file, options, model, progress);
      warn(result.tables);
      const migrated = result.applied.length > 0 ? `, and migrated: ${result.applied.join(', ')}` : '';
      show({ file, ...result }, flags, `${rowsOf(result.tables)}\nrestored and compared${migrated}`);
    });
}
