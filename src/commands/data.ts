import { openSync, writeSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Collection, Pick } from '../module.ts';
import { type Int64, int64FromText } from '../storage/input/int64.ts';
import { type FormatName, formatOf, formats, type Line } from './formats.ts';
import { clearProgress, exitCodes, json, printable, progressOn, show, whole, withExamples } from './program.ts';
import type { Imported, Watch } from './transfer.ts';

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
  rejects?: string;
}

const collectionArgument = ['[collection]', 'which items; the first collection when omitted'] as const;

/** `seed`, `export` and `import`. */
export function dataCommands(program: Command): void {
  const format = () =>
    new Option('--format <format>', 'by the name of the file, else ndjson').choices(Object.keys(formats));

  const seed = program
    .command('seed')
    .description('add plausible items; the service may run')
    .argument(...collectionArgument)
    .option('--count <n>', 'how many', whole(1, 1_000_000_000), 1000)
    .option('--seed <n>', 'the same number, the same items', whole(0, 4_294_967_295), 1)
    .option(...json)
    .action((name: string | undefined, flags: Flags) =>
      watched(flags, 'the items added so far stay', async (watch) => {
        const { importLines } = await import('./transfer.ts');
        const result = await withCollection(name, (collection) => {
          const { sample } = collection;
          if (!sample)
            throw new Error(`The collection ${collection.name} defines no sample data, so it cannot be seeded.`);
          const progress = (done: number) => watch.progress(done, flags.count);
          return timed(() => importLines(collection, samples(sample, flags), { ...watch, progress }));
        });
        report(result, flags);
      }),
    );
  withExamples(seed, 'animal-store seed --count 100000', 'animal-store seed --count 1000 --seed 7');

  const exporting = program
    .command('export')
    .description('write all items, ascending by id; the service may run')
    .argument(...collectionArgument)
    .option('-o, --output <file>', 'a file, which appears when it is complete; else standard output')
    .option('--force', 'overwrite the file')
    .addOption(format())
    .option('--after <id>', 'only items with a greater id', idFrom)
    .option(...json)
    .action((name: string | undefined, flags: Flags) => {
      const { output, format = formatOf(output), after, force } = flags;
      return watched(flags, 'no file was written; --after the last id continues standard output', async (watch) => {
        const { exportTo } = await import('./transfer.ts');
        const result = await withCollection(name, (collection) =>
          timed(() => exportTo(output, collection, { ...watch, format: formats[format], after, force })),
        );
        const last = result.last === undefined ? '' : `, the last with id ${result.last}`;
        const rate = rateOf(result.exported, result);
        // Standard output may be the export itself.
        const print = output ? process.stdout : process.stderr;
        show({ ...result, perSecond: rate }, flags, `${result.exported} exported${last}${timeOf(result, rate)}`, print);
      });
    });
  withExamples(exporting, 'animal-store export > pets.ndjson', 'animal-store export pets --output pets.csv');

  const importing = program
    .command('import')
    .description('add the items of a file in its order, with new ids; the service may run')
    .argument(...collectionArgument)
    .option('-i, --input <file>', 'else standard input')
    .addOption(format())
    .option('--again', 'also add lines that an earlier import of this file has added')
    .option('--dry-run', 'only check the lines')
    .option('--rejects <file>', 'append the number of each refused line and the reason to a file, as NDJSON')
    .option(...json)
    .action((name: string | undefined, flags: Flags) =>
      watched(flags, 'the lines added so far stay; the same command continues', async (watch) => {
        const { importFile } = await import('./transfer.ts');
        const { input, format = formatOf(input), again = false, dryRun = false } = flags;
        const result = await withCollection(name, (collection, maxLength) =>
          timed(() => importFile(input, collection, { ...watch, format: formats[format], again, dryRun, maxLength })),
        );
        report(result, flags);
      }),
    );
  withExamples(
    importing,
    'animal-store import --input pets.ndjson',
    'gzip -dc pets.csv.gz | animal-store import pets --format csv',
  );
}

/** @param work gets the maximum size of an item, in bytes: that of a request body */
async function withCollection<T>(
  name: string | undefined,
  work: (collection: Collection, maxLength: number) => Promise<T>,
): Promise<T> {
  const [{ withDatabase }, { modules }] = await Promise.all([import('./context.ts'), import('../modules.ts')]);
  return withDatabase(
    ({ database, config: { http } }) => {
      const apis = modules.map((module) => module.open({ database }));
      const collections = apis.flatMap(({ collections = [] }) => collections);
      const found = collections.find((one) => name === undefined || one.name === name);
      if (found) return work(found, http.bodyLimit);
      const names = collections.map((one) => one.name).join(', ');
      throw new Error(`There is no collection ${name}; the collections are: ${names}.`);
    },
    // A table may be locked for minutes; a service would refuse the creation, a command waits.
    { limits: { statementTimeout: 600_000 } },
  );
}

/** The same items for the same seed: those of 100 are the first of those of 1,000. */
async function* samples(sample: (pick: Pick) => object, { count, seed }: Flags): AsyncGenerator<Line> {
  // Marsaglia's xorshift of 32 bits (https://www.jstatsoft.org/v08/i14/paper); its state is never 0.
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  const random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  const pick: Pick = (members) => members[Math.floor(random() * members.length)] as (typeof members)[number];
  for (let line = 1; line <= count; line += 1) yield { line, input: sample(pick) };
}

type Timed<Result> = Result & { ms: number };

async function timed<Result extends object>(work: () => Promise<Result>): Promise<Timed<Result>> {
  const began = performance.now();
  const result = await work();
  return { ...result, ms: Math.round(performance.now() - began) };
}

const rateOf = (items: number, { ms }: { ms: number }) => Math.round(items / (Math.max(1, ms) / 1000));
const timeOf = ({ ms }: { ms: number }, rate: number) => ` in ${(ms / 1000).toFixed(1)} s: ${rate}/s`;

function report({ failure, ...counts }: Timed<Imported>, flags: Flags): void {
  const { added, same, refused } = counts;
  const perSecond = rateOf(added + same, counts);
  const others = `${same > 0 ? `, ${same} added before` : ''}${refused > 0 ? `, ${refused} refused` : ''}`;
  show({ ...counts, perSecond }, flags, `${added} added${others}${timeOf(counts, perSecond)}`);
  if (refused > 0) process.exitCode = exitCodes.refused;
  if (failure) throw failure;
}

/** The number of refused lines on standard error. */
const mostNamed = 20;
/** One Ctrl-C may arrive several times within this time (ms): from the terminal, from npm and from the launcher. */
const echo = 500;

/**
 * Runs work that shows its progress, names the lines that it refuses, and ends in order at the first Ctrl-C or `kill`. A
 * second one ends the process at once.
 *
 * @param interrupted describes what an interruption has left
 */
async function watched({ rejects }: Flags, interrupted: string, work: (watch: Watch) => Promise<void>): Promise<void> {
  const file = rejects === undefined ? undefined : openSync(rejects, 'a', 0o600);
  const controller = new AbortController();
  const signals = { SIGINT: 130, SIGTERM: 143 } as const;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      process.exitCode = signals[signal];
      controller.abort();
      setTimeout(() => process.removeAllListeners(signal), echo).unref();
    });
  }
  const note = (text: string) => process.stderr.write(`${text}\n`);
  const progress = progressOn(process.stderr);
  let refused = 0;
  try {
    await work({
      signal: controller.signal,
      progress: (items, total) => progress('items', items, total),
      refused(line, reason) {
        refused += 1;
        if (file !== undefined) writeSync(file, `${JSON.stringify({ line, reason })}\n`);
        clearProgress(process.stderr);
        if (refused <= mostNamed) note(`line ${line}: ${printable(reason)}`);
        else if (refused === mostNamed + 1) note('... and more (--rejects FILE lists all)');
      },
    });
  } catch (error) {
    const isUnread = (error as NodeJS.ErrnoException).code === 'EPIPE';
    if (isUnread) process.exitCode = exitCodes.unread;
    else if (!controller.signal.aborted) throw error;
  } finally {
    clearProgress(process.stderr);
    if (controller.signal.aborted) note(`interrupted: ${interrupted}`);
  }
}

function idFrom(text: string): Int64 {
  const id = int64FromText(text);
  if (id === undefined) throw new InvalidArgumentError('It must be an id: an int64 in decimal digits.');
  return id;
}
