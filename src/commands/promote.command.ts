import { Command } from 'commander';
import { json, Progress, rowsOf, show } from './program.ts';

export function promoteCommand(): Command {
  return new Command('promote')
    .description('make the embedded store a PostgreSQL: copy everything there, compare, and retire the store')
    .argument('<url>', 'postgres://...; the password may be in PGPASSWORD or ~/.pgpass instead')
    .option(...json)
    .action(async (url: string, flags: { json?: boolean }) => {
      const { configuredStore, warn } = await import('./context.ts');
      const { promote } = await import('../backup/promote.ts');
      const { show: progress } = new Progress(process.stderr);
      const others = { DATABASE_DIRECT_URL: '', DATABASE_READ_URLS: '' };
      const source = await configuredStore({ ...others, DATABASE_URL: '' });
      const target = await configuredStore({ ...others, DATABASE_URL: url });
      const result = await promote(source.options, { ...target.options, url }, source.model, progress);
      warn(result.tables);
      const done = result.wasThere ? 'was copied before and is the same' : 'is the same';
      show(
        result,
        flags,
        `${rowsOf(result.tables)}\n${result.target} ${done}; start the service with DATABASE_URL now`,
      );
    });
}
