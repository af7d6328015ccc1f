import { randomBytes } from 'node:crypto';
import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '../../api/resources/resource.ts';
import { int64Schema, nullable, textSchema } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';

/** The columns that no client sets. */
interface Sending {
  key: string;
  failedAt: Date | null;
  isOff: boolean;
  log: unknown;
}
export const sendingTo = (item: object) => item as Sending;

/** How long (ms) the secret before the last one signs, too. */
const overlap = 86_400_000;
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

export const transitions = {
  rotate: {
    description: 'Makes a new secret; both sign for a day.',
    change: (item: object): object => ({
      key: newSecret(),
      previousKey: sendingTo(item).key,
      previousUntil: new Date(Date.now() + overlap),
    }),
  },
  test: {
    description: 'Sends the event `webhooks.test`.',
    change: (): object => ({ isTested: true }),
  },
};

export const webhook = resource({
  name: 'Webhook',
  description: 'An endpoint of a caller, to which events are sent.',
  path: '/webhooks',
  operations: ['list', 'find', 'create', 'change', 'remove'],
  owner: 'owner',
  members: {
    url: textSchema({ maxLength: 2000, description: 'Its address.' }),
    types: Type.Array(
      textSchema({
        pattern: '^.+\\.(added|changed|removed)$',
        maxLength: 200,
        description: 'Like `toys.changed`.',
      }),
      { minItems: 1, maxItems: 100, description: 'Of its events.' },
    ),
    position: Type.Optional(
      nullable(
        int64Schema({
          description: 'Of its last event. Those after it are sent.',
        }),
      ),
    ),
  },
  computed: {
    secret: {
      schema: nullable(
        textSchema({ description: 'In answers to writes only.' }),
      ),
      of: () => null,
    },
    state: {
      schema: textSchema({
        description: '`active`, `failing`, or after three days `off`.',
      }),
      of(item) {
        const { isOff, failedAt } = sendingTo(item);
        if (isOff) return 'off';
        return failedAt ? 'failing' : 'active';
      },
    },
    deliveries: {
      schema: nullable(Type.Unknown({ description: 'The last 20.' })),
      of: (item) => sendingTo(item).log,
    },
  },
  transitions,
});
export const inputOf = validator(webhook.schemas.input);
export type Webhook = ItemOf<typeof webhook>;
export type NewWebhook = NewOf<typeof webhook>;

export const WebhookEntity = defineEntity({
  name: 'Webhook',
  tableName: 'webhook',
  properties: {
    ...webhook.columns,
    key: p.text(),
    previousKey: p.text().nullable(),
    previousUntil: p.datetime().nullable(),
    /** Whose rights it has; those of a host's in the member `host`. */
    caller: p.json(),
    attempts: p.integer().defaultRaw('0'),
    failedAt: p.datetime().nullable(),
    retryAt: p.datetime().nullable(),
    isOff: p.boolean().defaultRaw('false'),
    /** Of a host of assistants: its id, the filter, and when it ends. */
    subscription: p.text().nullable().unique('webhook_subscription_unique'),
    arguments: p.json().nullable(),
    until: p.datetime().nullable(),
    isTested: p.boolean().defaultRaw('false'),
    log: p.json().defaultRaw("'[]'"),
  },
  indexes: [{ properties: ['owner', 'id'] }],
});

/** One row: the process that sends. */
export const WebhookLeaseEntity = defineEntity({
  name: 'WebhookLease',
  tableName: 'webhook_lease',
  properties: {
    id: p.integer().primary().autoincrement(false),
    holder: p.text(),
    until: p.datetime(),
  },
});
