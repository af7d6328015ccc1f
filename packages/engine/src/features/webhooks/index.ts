import { flag } from '../../config/variables.ts';
import type { Database } from '../../database/database.ts';
import { feature } from '../../feature.ts';

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
    const { readStates } = await import('./states.ts');
    let database: Database;
    return {
      http(_app, given) {
        database = given;
      },
      metrics: [
        {
          name: 'service_webhooks',
          help: 'Endpoints, by state.',
          labels: ['state'],
          of: 'max',
          read: () => readStates(database),
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
