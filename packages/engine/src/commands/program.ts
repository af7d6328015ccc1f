import { styleText } from 'node:util';
import { exact } from '@animal-store/exact-json';
import {
  type Command,
  CommanderError,
  InvalidArgumentError,
  Option,
} from 'commander';
import { startFailure } from '../process/start-failure.ts';
import { int64FromText } from '../validation/int64.ts';

/** Exit codes. A signal ends a command with 128 plus the signal's number. */
export const exitCodes = {
  failed: 1,
  /** An unknown command or option, or an invalid argument. */
  usage: 2,
  /** Some items of the input were rejected, and the others were processed. */
  refused: 3,
  /**
   * The reader of standard output has closed it. The same code as for SIGPIPE.
   */
  unread: 141,
} as const;

/**
 * Prints a result: as one line of JSON, or as text. Everything that is not a
 * result goes to standard error.
 */
export function show(
  result: unknown,
  flags: { json?: boolean },
  text: string,
  stream: NodeJS.WritableStream = process.stdout,
) {
  stream.write(`${flags.json ? JSON.stringify(result, exact) : text}\n`);
}

/** The option of every command that prints a result. */
export const json = ['--json', 'print JSON, and nothing else'] as const;

export function withExamples(command: Command, ...examples: string[]) {
  return command.addHelpText('after', () =>
    ['', heading('Examples:'), ...examples.map((one) => `  ${one}`)].join('\n'),
  );
}

// Commander removes the colours unless the output is a terminal.
const heading = (text: string) =>
  styleText('bold', text, { validateStream: false });

/** Adds an option of `start` that sets a variable. */
export function startFlag(program: Command, flags: string, variable: string) {
  const option = new Option(flags, `as ${variable}`);
  program.commands
    .find((command) => command.name() === 'start')
    ?.addOption(option)
    .on(`option:${option.name()}`, (value: string) => {
      process.env[variable] = value;
    });
}

/** Creates a parser for an argument that is a whole number. */
export function integerBetween(min: number, max: number) {
  return (text: string) => {
    const number = Number(text);
    const isInteger = /^\d+$/.test(text);
    if (isInteger && number >= min && number <= max) return number;
    throw new InvalidArgumentError(
      `It must be a whole number between ${min} and ${max}.`,
    );
  };
}

/** Parses an id, or the position of an event. */
export function idFrom(text: string) {
  const id = int64FromText(text);
  if (id === undefined)
    throw new InvalidArgumentError('It must be an int64 in decimal digits.');
  return id;
}

const unitLengths: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses `90d`, `12h`, `30m`, `10s` or `0`, to milliseconds. */
export function duration(text: string) {
  if (!/^(0|\d{1,6}[smhd])$/.test(text))
    throw new InvalidArgumentError(
      'It must be a time like 90d, 12h, 30m or 10s.',
    );
  return Number.parseInt(text, 10) * (unitLengths[text.slice(-1)] ?? 0);
}

/**
 * Parses a time from now, or a date (UTC) with or without a time of day; it
 * must be in the future.
 */
export function momentFrom(text: string) {
  const [day] = /^\d{4}-\d\d-\d\d(?=$|T[\d:.]+Z$)/.exec(text) ?? [];
  const moment = new Date(day ? text : Date.now() + duration(text));
  // Date turns a nonexistent day into a day of the next month.
  if (day && !new Date(day).toJSON()?.startsWith(day))
    throw new InvalidArgumentError('There is no such date.');
  if (moment.getTime() > Date.now()) return moment;
  throw new InvalidArgumentError('It must be in the future.');
}

/**
 * Runs the command that the arguments name.
 *
 * @param before called first; throws when no command can run
 */
export async function runProgram(program: Command, before: () => void) {
  const prefix = `${program.name()}: `;
  const outputError = (text: string, write: (text: string) => void) =>
    write(text.replace(/^error: /, prefix));
  program
    .exitOverride()
    .configureHelp({ styleTitle: heading })
    .configureOutput({ outputError });
  inheritSettings(program);
  const fail = (error: unknown) => {
    const isUnread = (error as NodeJS.ErrnoException).code === 'EPIPE';
    if (!isUnread) process.stderr.write(`${prefix}${startFailure(error)}\n`);
    process.exitCode = isUnread ? exitCodes.unread : exitCodes.failed;
  };
  process.stdout.on('error', fail);
  try {
    before();
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) fail(error);
    // Help and the version are no failures.
    else if (error.exitCode !== 0) process.exitCode = exitCodes.usage;
  }
}

/**
 * Copies settings to all subcommands; Commander copies them only to commands
 * created later.
 */
function inheritSettings(command: Command, name = command.name()) {
  command.showHelpAfterError(`See \`${name} --help\`.`);
  for (const one of command.commands as Command[]) {
    inheritSettings(
      one.copyInheritedSettings(command),
      `${name} ${one.name()}`,
    );
  }
}

/** Formats rows with the same members as a text table. */
export function table(rows: Array<Record<string, unknown>>, whenEmpty: string) {
  const [first] = rows;
  if (!first) return whenEmpty;
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => Object.values(row).map(cell))];
  const widths = names.map((_, at) =>
    Math.max(...lines.map((line) => `${line[at]}`.length)),
  );
  const padded = (text: string, at: number) => text.padEnd(widths[at] ?? 0);
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n');
}

function cell(value: unknown) {
  if (value instanceof Date)
    return `${value.toISOString().slice(0, 19).replace('T', ' ')}Z`;
  return printable(`${value ?? '-'}`);
}

/**
 * Replaces control characters, which a terminal would interpret. SUDO_USER and
 * files may contain them.
 */
export const printable = (text: string) => text.replace(/\p{Cc}/gu, '?');

/**
 * Overwrites one line on a terminal, up to ten times a second. Writes nothing
 * to other streams.
 */
export class Progress {
  #shown = 0;

  constructor(private readonly stream: NodeJS.WriteStream) {}

  /** @param done number of items so far */
  readonly show = (name: string, done: number) => {
    const now = performance.now();
    if (!this.stream.isTTY || now - this.#shown < 100) return;
    this.#shown = now;
    this.stream.write(`\r\x1b[2K${name}: ${done}\r`);
  };

  clear() {
    if (this.stream.isTTY) this.stream.write('\r\x1b[2K');
  }
}

/**
 * One Ctrl-C may arrive several times within this time (ms): from the terminal,
 * npm and a launcher.
 */
const repeatWindow = 500;

/**
 * @returns a signal that the first Ctrl-C or `kill` aborts, so that work ends
 *   gracefully; the second one ends the process
 */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const [name, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) {
    process.on(name, () => {
      process.exitCode = code;
      controller.abort();
      setTimeout(() => process.removeAllListeners(name), repeatWindow).unref();
    });
  }
  return controller.signal;
}
