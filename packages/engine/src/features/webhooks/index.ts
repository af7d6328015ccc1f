import { flag } from '../../config/variables.ts';
import { feature, type Reading } from '../../feature.ts';

/** Sends changes to the endpoints of callers (Standard Webhooks). */
export const webhooks = feature({
  name: 'webhooks',
  variables: {
    WEBHOOKS: flag(false, 'Sends events to endpoints (webhooks.md).'),
    WEBHOOKS_LOCAL: flag(
      false,
      'Also to private addresses, and by http: for development (webhooks.md).',
    ),
  },
  checks({ values }, store) {
    const isKept = store.options.ownStore?.exists() !== false;
    if (!values.WEBHOOKS || !isKept) return [];
    const remedy = 'see docs/runbook.md, AnimalStoreWebhooksOff';
    const run = async () => (await import('./states.ts')).examineStates(store);
    return [{ name: 'webhooks', remedy, state: 'warning', run }];
  },
  async start({ values }) {
    if (!values.WEBHOOKS) return undefined;
    const { statesIn } = await import('./states.ts');
    let read = async (): Promise<Reading[]> => [];
    return {
      http(_app, database) {
        // Metrics are there while the database is away.
        read = () => statesIn(database).catch(() => []);
      },
      metrics: [
        {
          name: 'service_webhooks',
          help: 'Endpoints, by state.',
          labels: ['state'],
          of: 'max',
          read: () => read(),
        },
      ],
    };
  },
  async module() {
    const { webhooksModule } = await import('./webhooks.module.ts');
    return webhooksModule;
  },
  async commands(program, stores) {
    program.commandsGroup('Data:');
    program
      .command('webhooks')
      .description('endpoints to which events are sent; the service may run')
      .argument('<action>', 'create, list, remove, test, rotate or replay')
      .argument('[id]', 'as in the list')
      .argument('[position]', 'after which `replay` sends all again')
      .option('--url <url>', 'address of a new one')
      .option('--types <types>', 'of its events, by commas')
      .option('--json', 'print JSON, and nothing else')
      .action(async (action, id, position, flags) => {
        const { runWebhooks } = await import('./run.ts');
        await runWebhooks(stores, action, { id, position, ...flags });
      });
  },
});
