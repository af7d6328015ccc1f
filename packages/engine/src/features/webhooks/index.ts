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
    return [
      {
        name: 'webhooks',
        remedy: 'see docs/runbook.md, AnimalStoreWebhooksOff',
        state: 'warning',
        run: async () => (await import('./states.ts')).examineStates(store),
      },
    ];
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
    return (await import('./webhooks.module.ts')).webhooksModule;
  },
  async commands(program, stores) {
    const { webhookCommands } = await import('./commands.ts');
    webhookCommands(program, stores);
  },
});
