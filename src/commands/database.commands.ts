import { Command, InvalidArgumentError, Option } from 'commander';
import { type Output, withExamples } from './terminal/program.ts';

/** What the commands do, with the configured database. */
export interface DatabaseWork {
  /** @returns the names of the migrations that it has applied */
  migrate(): Promise<string[]>;
  /** @returns a line for each table */
  distribute(layout: 'reference' | number): Promise<string[]>;
}

interface Flags {
  reference?: true;
  shards?: number;
  json?: true;
}

/** `migrate` and `distribute`: parse, call, print. */
export function databaseCommands(work: DatabaseWork, { print }: Output): Command[] {
  const migrate = new Command('migrate')
    .description('apply pending migrations; nodes of the previous release may serve meanwhile')
    .option('--json', 'print JSON, and nothing else')
    .action(async ({ json }: Flags) => {
      const applied = await work.migrate();
      const text = applied.length > 0 ? `applied: ${applied.join(', ')}` : 'the database is up to date';
      print(json ? JSON.stringify({ applied }) : text);
    });
  withExamples(migrate, 'animal-store migrate', 'DATABASE_URL=postgres://... animal-store migrate --json');

  const distribute = new Command('distribute')
    .description('migrate, and turn the tables into tables of a Citus cluster; shared tables become reference tables')
    .addOption(new Option('--reference', 'whole on every node: each node answers reads by itself').conflicts('shards'))
    .option('--shards <n>', 'by id, over n shards on the workers: for what one machine does not hold', shardsFrom)
    .option('--json', 'print JSON, and nothing else')
    .action(async ({ reference, shards, json }: Flags) => {
      const layout = reference ? 'reference' : shards;
      if (layout === undefined) distribute.error('error: give either --reference or --shards <n>');
      else {
        const lines = await work.distribute(layout);
        print(json ? JSON.stringify({ tables: lines }) : lines.join('\n'));
      }
    });
  withExamples(distribute, 'animal-store distribute --shards 32', 'animal-store distribute --reference');
  return [migrate, distribute];
}

function shardsFrom(text: string): number {
  // Citus takes up to 64,000, and refuses more.
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('A whole number of shards, at least 1.');
  return Number(text);
}
