import { type Command, Option } from 'commander';
import {
  idFrom,
  integerBetween,
  json,
  withExamples,
} from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import type { TransferFlags, TransferName } from './run.ts';

export function transferCommands(program: Command, stores: Stores) {
  program.commandsGroup('Data:');
  const command = (name: TransferName, description: string) =>
    program
      .command(name)
      .description(description)
      .argument(
        '[collection]',
        'which items; the first collection when omitted',
      )
      .action(async (collection: string | undefined, flags: TransferFlags) => {
        const { runTransfer } = await import('./run.ts');
        await runTransfer(name, collection, flags, stores);
      });
  const format = () =>
    new Option(
      '--format <format>',
      'by the name of the file, else ndjson',
    ).choices(['ndjson', 'csv']);

  command('seed', 'add plausible items; the service may run')
    .option('--count <n>', 'how many', integerBetween(1, 1_000_000_000), 1000)
    .option(
      '--seed <n>',
      'the same number, the same items',
      integerBetween(0, 4_294_967_295),
      1,
    )
    .option(...json);

  const fileFrom = (text: string) => (text === '-' ? undefined : text);

  const exporting = command(
    'export',
    'write all items, ascending by id; the service may run',
  )
    .option(
      '-o, --output <file>',
      'a file, which appears when it is complete; else, or for -, standard output',
      fileFrom,
    )
    .option('--force', 'overwrite the file')
    .addOption(format())
    .option('--after <id>', 'only items with a greater id', idFrom)
    .option(...json);
  withExamples(
    exporting,
    `${program.name()} export > items.ndjson`,
    `${program.name()} export --output items.csv`,
  );

  const importing = command(
    'import',
    'add the items of a file in its order, with new ids; the service may run',
  )
    .option('-i, --input <file>', 'else, or for -, standard input', fileFrom)
    .addOption(format())
    .option(
      '--again',
      'also add lines that an earlier import of this file has added',
    )
    .option('--dry-run', 'only check the lines')
    .option(...json);
  withExamples(
    importing,
    `${program.name()} import --input items.ndjson`,
    `gzip -dc items.csv.gz | ${program.name()} import --format csv`,
  );
}
