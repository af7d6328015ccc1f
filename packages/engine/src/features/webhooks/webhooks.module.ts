import { every } from '../../access/background.ts';
import type { Module } from '../../api/module.ts';
import { AddSubscription } from './add-subscription.ts';
import { CreateWebhook } from './create-webhook.ts';
import { HostSubscriptions } from './host-subscriptions.ts';
import { Courier } from './post.ts';
import { Sender } from './sender.ts';
import { Sources } from './sources.ts';
import { UniqueSubscription } from './unique-subscription.ts';
import { WebhookEntity, WebhookLeaseEntity, webhook } from './webhook.ts';
import { WebhookRecords } from './webhook-records.ts';

/** Average pause (ms) between two looks for events. */
const pause = 500;

export const webhooksModule: Module<WebhookRecords> = {
  tag: { name: 'Webhooks', description: 'Endpoints to which events are sent.' },
  isLocal: true,
  entities: [WebhookEntity, WebhookLeaseEntity],
  migrations: [
    { name: '2026_11_29_020000_create_webhook', class: CreateWebhook },
    { name: '2026_11_29_030000_add_subscription', class: AddSubscription },
    {
      name: '2026_11_29_040000_unique_subscription',
      class: UniqueSubscription,
    },
  ],
  isOff: ({ WEBHOOKS: isOn }) => !isOn,
  open(context) {
    const { database, config } = context;
    const courier = new Courier(config.WEBHOOKS_LOCAL === true);
    const sources = new Sources(context);
    const service = new WebhookRecords(database, sources, courier);
    if (config.WEBHOOKS)
      database.subscriptions = new HostSubscriptions(
        database,
        service,
        sources,
        courier,
      );
    return {
      service,
      resources: [webhook.serve(service)],
      routes(app) {
        // Operators, and the bootstrap key while it is set.
        const rowless = config.BOOTSTRAP_API_KEY ? 0 : -1;
        const sender = new Sender(database, sources, courier, app.log, rowless);
        // After the last look, because Fastify calls later hooks first.
        app.addHook('onClose', () => sender.close());
        every(app, pause, () => sender.begin(), 'no webhooks are sent yet');
      },
    };
  },
};
