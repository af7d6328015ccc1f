import type { Command } from 'commander';
import { idFrom, json } from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import type { Action } from './run.ts';

const listed = (text: string) => text.split(',');

export function webhookCommands(program: Command, stores: Stores) {
  program.commandsGroup('Data:');
  const group = program
    .command('webhooks')
    .description('endpoints to which events are sent; the service may run');
  const command = (name: Action, description: string, ...ids: string[]) => {
    const one = group
      .command(name)
      .description(description)
      .option(...json);
    for (const id of ids) one.argument(id, 'as in the list', idFrom);
    return one.action(async () => {
      const { runWebhooks } = await import('./run.ts');
      const [id, position] = one.processedArgs;
      await runWebhooks(stores, name, { id, position, ...one.opts() });
    });
  };
  command('create', 'add one')
    .requiredOption('--url <url>', 'its address')
    .requiredOption('--types <types>', 'of its events, by commas', listed);
  command('list', '100, after an id', '[id]');
  command('remove', 'send nothing more', '<id>');
  command('test', 'send the event `webhooks.test`', '<id>');
  command('rotate', 'make a new secret; both sign for a day', '<id>');
  command('replay', 'send what follows it again', '<id>', '<position>');
}
