import { openSync, writeSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Int64, int64FromText } from '../../storage/input/int64.ts';
import { exitCodes, type Output, withExamples } from '../terminal/program.ts';
import { clearLine, progressOn } from '../terminal/progress.ts';
import type { DataDesk, ExportFlags, ImportFlags, Timed, Watch } from './desk.ts';
import { formats } from './format.ts';
import type { Imported } from './import.ts';
import { type Interruption, onInterruption } from './interruption.ts';

/** How many refused lines are named on standard error. */
const mostNamed = 20;

/** `seed`, `export` and `import`: parse, call, print. */
export function dataCommands(program: Command, open: () => Promise<DataDesk>, { print, note }: Output): void {
  const collection = ['[collection]', 'which items; the first collection when it is left out'] as const;
  const json = () => new Option('--json', 'print JSON, and nothing else');
  const format = () => new Option('--format <format>', 'by the file’s name, else ndjson').choices(Object.keys(formats));

  function show(result: Timed<Imported> | undefined, asJson: boolean | undefined): void {
    if (!result) return;
    const { failure, ...counts } = result;
    const perSecond = speedOf(result.added + result.same, result);
    const refused = result.refused > 0 ? `, ${result.refused} refused` : '';
    const same = result.same > 0 ? `, ${result.same} were there` : '';
    const text = `${result.added} added${same}${refused} in ${(result.ms / 1000).toFixed(1)} s: ${perSecond}/s`;
    print(asJson ? JSON.stringify({ ...counts, perSecond }) : text);
    if (result.refused > 0) process.exitCode = exitCodes.refused;
    if (failure) throw failure;
  }

  const seed = program
    .command('seed')
    .description('add plausible items, through the rules of a creation; the service may run')
    .argument(...collection)
    .option('--count <n>', 'how many', whole(1, 1_000_000_000), 1000)
    .option('--seed <n>', 'the same number, the same items', whole(0, 4_294_967_295), 1)
    .addOption(json())
    .action(async (name: string | undefined, flags: { count: number; seed: number; json?: true }) => {
      const result = await watched('seed', undefined, note, async (watch) =>
        (await open()).seed(name, flags.count, flags.seed, watch),
      );
      show(result, flags.json);
    });
  withExamples(seed, 'animal-store seed --count 100000', 'animal-store seed --count 1000 --seed 7');

  const exporting = program
    .command('export')
    .description('write all items, ascending by id, as they are at one moment; the service may run')
    .argument(...collection)
    .option('-o, --output <file>', 'a file, which appears when it is whole; else standard output')
    .option('--force', 'overwrite the file')
    .addOption(format())
    .option('--after <id>', 'only items with a greater id', idFrom)
    .addOption(json())
    .action(async (name: string | undefined, flags: ExportFlags & { json?: true }) => {
      const result = await watched('export', undefined, note, async (watch) =>
        (await open()).export(name, flags, watch),
      );
      if (!result) return;
      const speed = speedOf(result.exported, result);
      const last = result.last === undefined ? '' : `, the last with id ${result.last}`;
      const text = `${result.exported} exported${last}, in ${(result.ms / 1000).toFixed(1)} s: ${speed}/s`;
      // Standard output may be the file itself.
      (flags.output ? print : note)(flags.json ? JSON.stringify({ ...result, perSecond: speed }) : text);
    });
  withExamples(exporting, 'animal-store export > pets.ndjson', 'animal-store export pets --output pets.csv');

  const importing = program
    .command('import')
    .description('add the items of a file, through the rules of a creation; the service may run')
    .argument(...collection)
    .option('-i, --input <file>', 'else standard input')
    .addOption(format())
    .addOption(
      new Option('--ids <ids>', 'keep those of the file, or give new ones; by the first item when left out').choices([
        'keep',
        'new',
      ]),
    )
    .option('--anywhere', 'also ids below the last one that was given out: readers who have passed them miss them')
    .option('--again', 'add items that get new ids even when the same file has added them before')
    .option('--dry-run', 'only check')
    .option('--rejects <file>', 'append refused lines to it, as NDJSON: their number and the reason')
    .addOption(json())
    .action(async (name: string | undefined, flags: ImportFlags & { rejects?: string; json?: true }) => {
      const result = await watched('import', flags.rejects, note, async (watch) =>
        (await open()).import(name, flags, watch),
      );
      show(result, flags.json);
    });
  withExamples(
    importing,
    'animal-store import --input pets.ndjson',
    'gzip -dc pets.csv.gz | animal-store import pets --format csv',
  );
}

/** What a file holds must not steer the terminal. */
const printable = (text: string) =>
  text.replace(/[\x00-\x1f\x7f-\x9f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

const speedOf = (items: number, { ms }: { ms: number }) => Math.round(items / (Math.max(1, ms) / 1000));

/** What is the case when one was interrupted. */
const left = {
  seed: 'what was added stays',
  export: 'a file was not written; on standard output, --after the last id goes on',
  import: 'what was added stays; the same command goes on',
} as const;

/**
 * Runs work that shows how far it is, names what it refuses, and ends in order when it is told to.
 *
 * @returns undefined when it was given up
 */
async function watched<T>(
  name: keyof typeof left,
  rejects: string | undefined,
  note: (text: string) => void,
  work: (watch: Watch) => Promise<T>,
): Promise<T | undefined> {
  const file = rejects === undefined ? undefined : openSync(rejects, 'a', 0o600);
  const progress = progressOn(process.stderr);
  const signal = onInterruption();
  let refused = 0;
  try {
    return await work({
      signal,
      progress: (items, total) => progress(name, items, total),
      refused(line, reason) {
        refused += 1;
        if (file !== undefined) writeSync(file, `${JSON.stringify({ line, reason })}\n`);
        clearLine(process.stderr);
        if (refused <= mostNamed) note(`line ${line}: ${printable(reason)}`);
        else if (refused === mostNamed + 1) note('... and more (--rejects FILE has them all)');
      },
    });
  } catch (error) {
    const isUnread = (error as NodeJS.ErrnoException).code === 'EPIPE';
    if (!isUnread && !signal.aborted) throw error;
    // Whoever reads what is exported has had enough of it: nothing to speak of.
    if (isUnread) process.exitCode = exitCodes.unread;
    return undefined;
  } finally {
    clearLine(process.stderr);
    if (signal.aborted) {
      process.exitCode = (signal.reason as Interruption).exitCode;
      note(`interrupted: ${left[name]}`);
    }
  }
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : -1;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`A whole number between ${min} and ${max}.`);
  };
}

function idFrom(text: string): Int64 {
  const id = int64FromText(text);
  if (id === undefined) throw new InvalidArgumentError('An id: an int64 in decimal digits.');
  return id;
}
