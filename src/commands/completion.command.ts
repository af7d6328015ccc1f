import { Argument, Command } from 'commander';
import { placesIn, shells } from './completion.ts';
import { type Output, withExamples } from './terminal/program.ts';

/** `completion`: prints what a shell has to read. */
export function completionCommand(program: Command, { print }: Output): Command {
  const command = new Command('completion')
    .description('print a script with which a shell completes commands and options')
    .addArgument(new Argument('<shell>').choices(Object.keys(shells)))
    .action((shell: keyof typeof shells) => print(shells[shell](placesIn(program)).trimEnd()));
  return withExamples(
    command,
    'eval "$(animal-store completion bash)"',
    'animal-store completion fish > ~/.config/fish/completions/animal-store.fish',
  );
}
