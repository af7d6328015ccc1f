import { styleText } from 'node:util';
import { type Command, CommanderError, type OutputConfiguration } from 'commander';

/** How a command ends, beside 128 and a signal's number. */
export const exitCodes = {
  /** It has done what was asked. */
  done: 0,
  /** It could not, or has found a failure (`doctor`). */
  failed: 1,
  /** It was asked for what there is not: as shells and most programs say so. */
  usage: 2,
  /** Lines of a file were refused, and the others were added (`import`). */
  refused: 3,
  /** Whoever reads the results has gone: what SIGPIPE would end with. */
  unread: 141,
} as const;

/** Prints results on standard output, and everything else on standard error. */
export interface Output {
  print(text: string): void;
  note(text: string): void;
}

/** Adds examples to a command's help, and to how they are found. */
export function withExamples(command: Command, ...examples: string[]): Command {
  const lines = examples.map((example) => `  ${example}`);
  return command.addHelpText('after', `\n${heading('Examples:')}\n${lines.join('\n')}`);
}

/** Commander takes the colours out where nobody sees them. */
const heading = (text: string) => styleText('bold', text, { validateStream: false });

/**
 * Runs the command that the arguments name.
 *
 * @param before throws when nothing can be run at all
 * @param explain says in a line why a command has failed; what Commander refuses it has explained by itself
 */
export async function runProgram(
  program: Command,
  { before, explain }: { before(): void; explain(error: unknown): string },
): Promise<void> {
  program
    .exitOverride()
    .showHelpAfterError(`See \`${program.name()} --help\`.`)
    .configureHelp({ styleTitle: heading })
    .configureOutput(helpHint);
  inherit(program);
  try {
    before();
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    else {
      process.stderr.write(`animal-store: ${explain(error)}\n`);
      process.exitCode = exitCodes.failed;
    }
  }
}

const helpHint: OutputConfiguration = {
  outputError: (text, write) => write(text.replace(/^error: /, 'animal-store: ')),
};

/** A group that was made elsewhere does as the program does. */
function inherit(command: Command, path = command.name()): void {
  for (const one of command.commands) {
    const name = `${path} ${one.name()}`;
    one.copyInheritedSettings(command).showHelpAfterError(`See \`${name} --help\`.`);
    inherit(one as Command, name);
  }
}
