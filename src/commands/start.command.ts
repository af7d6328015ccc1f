import { Command } from 'commander';
import { withExamples } from './terminal/program.ts';

/** A variable of the configuration, as its help tells of it. */
export interface Variable {
  desc?: string | undefined;
  default?: unknown;
  choices?: readonly unknown[] | undefined;
}

/** The variables that are typed again and again. All others are given by the environment alone. */
const flags = {
  port: 'PORT',
  host: 'HOST',
  workers: 'WORKERS',
  dataDir: 'DATA_DIR',
} as const;

type Flags = Partial<Record<keyof typeof flags, string>>;

/**
 * `start`: serves in this process.
 *
 * @param serve gets the variables that flags have set, over those of the environment
 */
export function startCommand(
  variables: Record<string, Variable>,
  serve: (given: Record<string, string>) => Promise<void>,
): Command {
  const command = new Command('start')
    .description('serve REST and GraphQL, until SIGTERM or Ctrl-C')
    .option('--port <port>', 'as PORT')
    .option('--host <address>', 'as HOST')
    .option('--workers <number>', 'as WORKERS')
    .option('--data-dir <folder>', 'as DATA_DIR')
    .action((given: Flags) => serve(Object.fromEntries(Object.entries(given).map(asVariable))));
  withExamples(
    command,
    'animal-store start',
    'animal-store start --port 5000 --data-dir /var/lib/animal-store',
    'DATABASE_URL=postgres://store@db.example/store animal-store start --workers auto',
  );
  return command.addHelpText('after', () => `\nEnvironment:\n${described(variables)}`);
}

function asVariable([flag, value]: [string, string]): [string, string] {
  return [flags[flag as keyof Flags], value];
}

function described(variables: Record<string, Variable>): string {
  const width = Math.max(...Object.keys(variables).map((name) => name.length));
  return Object.entries(variables)
    .map(([name, variable]) => `  ${name.padEnd(width)}  ${sentence(variable)}`)
    .join('\n');
}

function sentence({ desc = '', default: value, choices }: Variable): string {
  const of = choices ? ` One of ${choices.join(', ')}.` : '';
  const otherwise = value === undefined || `${value}` === '' ? '' : ` (${value})`;
  return `${desc}${of}${otherwise}`;
}
