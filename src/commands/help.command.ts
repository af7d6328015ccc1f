import { Command } from 'commander';

/** `help keys issue`. Commander's own looks one word deep. */
export function helpCommand(program: Command): Command {
  return new Command('help')
    .description('explain a command')
    .argument('[command...]', 'its words: keys issue')
    .action((words: string[]) => {
      let found = program;
      for (const word of words) {
        const next = found.commands.find((one) => one.name() === word);
        if (!next) return found.error(`error: unknown command '${word}'`);
        found = next as Command;
      }
      found.outputHelp();
    });
}
