import { hash } from 'node:crypto';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Collection, openModules, type PickOne } from '../api/module.ts';
import { type Int64, int64FromText } from '../validation/int64.ts';
import { type FormatName, formatOf, formats, type Line } from './formats.ts';
import {
  exitCodes,
  interruption,
  json,
  Progress,
  printable,
  show,
  whole,
  withExamples,
} from './program.ts';
import type { Imported, TransferObserver } from './transfer.ts';

interface Flags {
  json?: boolean;
  force?: boolean;
  again?: boolean;
  dryRun?: boolean;
  count: number;
  seed: number;
  input?: string;
  output?: string;
  format?: FormatName;
  after?: Int64;
}

const collectionArgument = [
  '[collection]',
  'which items; the first collection when omitted',
] as const;

export function dataCommands(program: Command): void {
  const format = () =>
    new Option(
      '--format <format>',
      'by the name of the file, else ndjson',
    ).choices(Object.keys(formats));

  program
    .command('seed')
    .description('add plausible items; the service may run')
    .argument(...collectionArgument)
    .option('--count <n>', 'how many', whole(1, 1_000_000_000), 1000)
    .option(
      '--seed <n>',
      'the same number, the same items',
      whole(0, 4_294_967_295),
      1,
    )
    .option(...json)
    .action((name: string | undefined, flags: Flags) =>
      runTransfer(
        name,
        flags,
        'the items added so far stay',
        async (collection, observer) => {
          const { importLines } = await import('./transfer.ts');
          const { sample } = collection;
          if (sample)
            return report(
              await importLines(collection, samples(sample, flags), observer),
              'added',
            );
          throw new Error(
            `The collection ${collection.name} defines no sample data, so it cannot be seeded.`,
          );
        },
      ),
    );

  const exporting = program
    .command('export')
    .description('write all items, ascending by id; the service may run')
    .argument(...collectionArgument)
    .option(
      '-o, --output <file>',
      'a file, which appears when it is complete; else standard output',
    )
    .option('--force', 'overwrite the file')
    .addOption(format())
    .option('--after <id>', 'only items with a greater id', idFrom)
    .option(...json)
    .action((name: string | undefined, flags: Flags) => {
      const { output, format = formatOf(output), after, force } = flags;
      const interrupted =
        'no file was written; --after the last id continues standard output';
      return runTransfer(
        name,
        flags,
        interrupted,
        async (collection, observer) => {
          const { exportTo } = await import('./transfer.ts');
          const result = await exportTo(output, collection, {
            ...observer,
            format: formats[format],
            after,
            force,
          });
          const last =
            result.last === undefined
              ? ''
              : `, the last with id ${result.last}`;
          // Standard output may be the export itself.
          const stream = output ? process.stdout : process.stderr;
          return {
            result,
            items: result.exported,
            text: `${result.exported} exported${last}`,
            stream,
          };
        },
      );
    });
  withExamples(
    exporting,
    'animal-store export > pets.ndjson',
    'animal-store export pets --output pets.csv',
  );

  const importing = program
    .command('import')
    .description(
      'add the items of a file in its order, with new ids; the service may run',
    )
    .argument(...collectionArgument)
    .option('-i, --input <file>', 'else standard input')
    .addOption(format())
    .option(
      '--again',
      'also add lines that an earlier import of this file has added',
    )
    .option('--dry-run', 'only check the lines')
    .option(...json)
    .action((name: string | undefined, flags: Flags) => {
      const {
        input,
        format = formatOf(input),
        again = false,
        dryRun = false,
      } = flags;
      const interrupted = `the lines added so far stay${again ? '' : '; the same command continues'}`;
      return runTransfer(
        name,
        flags,
        interrupted,
        async (collection, observer, maxLength) => {
          const { importFile } = await import('./transfer.ts');
          const options = {
            ...observer,
            format: formats[format],
            again,
            dryRun,
            maxLength,
          };
          return report(
            await importFile(input, collection, options),
            dryRun ? 'valid' : 'added',
          );
        },
      );
    });
  withExamples(
    importing,
    'animal-store import --input pets.ndjson',
    'gzip -dc pets.csv.gz | animal-store import pets --format csv',
  );
}

/** Generates the same items for the same seed, whatever the count. */
async function* samples(
  sample: NonNullable<Collection['sample']>,
  { count, seed }: Flags,
): AsyncGenerator<Line> {
  let picked = 0;
  const pick: PickOne = (members) => {
    if (members.length === 0)
      throw new Error(
        'There is nothing to pick: first seed what the samples refer to.',
      );
    const random = hash(
      'sha256',
      `${seed} ${picked++}`,
      'buffer',
    ).readUInt32LE();
    return members[random % members.length] as (typeof members)[number];
  };
  for (let line = 1; line <= count; line += 1)
    yield { line, input: await sample(pick) };
}

/** The result of a transfer, to print at its end. */
interface ImportReport {
  result: object;
  items: number;
  text: string;
  stream?: NodeJS.WritableStream;
  failure?: unknown;
}

function report(
  { failure, ...result }: Imported,
  verb: 'added' | 'valid',
): ImportReport {
  const { added, same, refused } = result;
  // An interrupted one says so.
  if (refused > 0) process.exitCode ??= exitCodes.refused;
  const others = `${same > 0 ? `, ${same} added before` : ''}${refused > 0 ? `, ${refused} refused` : ''}`;
  return {
    result,
    items: added + same,
    text: `${added} ${verb}${others}`,
    failure,
  };
}

/**
 * Runs a transfer, shows its progress and reports rejected lines.
 *
 * @param name of the collection
 * @param interrupted describes the state after an interruption
 * @param work its `maxLength` is the maximum size of an item in bytes, that of
 *   a request body
 */
async function runTransfer(
  name: string | undefined,
  flags: Flags,
  interrupted: string,
  work: (
    collection: Collection,
    observer: TransferObserver,
    maxLength: number,
  ) => Promise<ImportReport>,
): Promise<void> {
  const signal = interruption();
  const note = (text: string) => process.stderr.write(`${text}\n`);
  const progress = new Progress(process.stderr);
  const refused = (line: number, reason: string) => {
    progress.clear();
    note(`line ${line}: ${printable(reason)}`);
  };
  try {
    const { withDatabase } = await import('./context.ts');
    const { modules } = await import('../modules/modules.ts');
    await withDatabase(async (database, { values, http }) => {
      const collections = openModules(modules, database, values).flatMap(
        ({ collections = [] }) => collections,
      );
      const collection = collections.find(
        (one) => name === undefined || one.name === name,
      );
      const names = collections.map((one) => one.name).join(', ');
      if (!collection)
        throw new Error(
          `There is no collection ${name}; the collections are: ${names}.`,
        );
      const began = performance.now();
      const observer = {
        signal,
        progress: (items: number) => progress.show('items', items),
        refused,
      };
      const { result, items, text, stream, failure } = await work(
        collection,
        observer,
        http.bodyLimit,
      );
      const ms = Math.round(performance.now() - began);
      const perSecond = Math.round(items / (Math.max(1, ms) / 1000));
      show(
        { ...result, ms, perSecond },
        flags,
        `${text} in ${(ms / 1000).toFixed(1)} s: ${perSecond}/s`,
        stream,
      );
      if (failure) throw failure;
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    progress.clear();
    if (signal.aborted) note(`interrupted: ${interrupted}`);
  }
}

function idFrom(text: string): Int64 {
  const id = int64FromText(text);
  if (id === undefined)
    throw new InvalidArgumentError(
      'It must be an id: an int64 in decimal digits.',
    );
  return id;
}
