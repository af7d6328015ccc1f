import type { Command } from 'commander';
import type { Service } from '../feature.ts';
import { json, show } from './program.ts';

export function migrateCommand(program: Command, service: Service) {
  program
    .command('migrate')
    .description(
      'apply pending migrations; nodes of the previous release may serve meanwhile',
    )
    .option(...json)
    .action(async (flags: { json?: boolean }) => {
      const { migrateStore } = await import('./context.ts');
      const applied = await migrateStore(service);
      let text = 'the database is up to date';
      if (applied.length > 0) text = `applied: ${applied.join(', ')}`;
      show({ applied }, flags, text);
    });
}
