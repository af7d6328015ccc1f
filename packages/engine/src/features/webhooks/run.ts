import { openModules } from '../../api/module.ts';
import { Call } from '../../call.ts';
import { show, table } from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import type { Int64 } from '../../validation/int64.ts';
import { inputOf, transitions } from './webhook.ts';
import type { WebhookRecords } from './webhook-records.ts';
import { webhooksModule } from './webhooks.module.ts';

interface Given {
  id?: Int64;
  position?: Int64;
  json?: boolean;
}

const operator = Call.ofOperator();

export type Action =
  | 'create'
  | 'list'
  | 'remove'
  | 'replay'
  | keyof typeof transitions;

async function act(all: WebhookRecords, action: Action, given: Given) {
  const { id, position } = given;
  if (action === 'create') return [await all.create(inputOf(given), operator)];
  if (action === 'list') {
    const query = { after: id, limit: 100 };
    const { items } = await all.list(query as never, operator);
    return items;
  }
  const item = await all.find(id, operator);
  if (!item) throw new Error(`There is no webhook ${id}.`);
  if (action === 'remove') {
    await all.remove(item.id, {} as never, operator);
    return [item];
  }
  const changed =
    action === 'replay' ? { position } : transitions[action].change(item);
  const change = { ...changed, version: item.version };
  return [(await all.change(item.id, change, operator)) ?? item];
}

export async function runWebhooks(
  stores: Stores,
  action: Action,
  given: Given,
) {
  await stores.withDatabase(async (database, { config, modules }) => {
    const opened = openModules(modules, database, config.values);
    const all = opened.find(({ tag }) => tag === webhooksModule.tag)?.service;
    const items = await act(all as WebhookRecords, action, given);
    const rows = items.map(({ id, state, owner, url, types, ...more }) => {
      const { position, secret, deliveries } = more;
      const row = { id, state, owner, url, types, position, secret };
      return given.json ? { ...row, deliveries } : row;
    });
    show(rows, given, table(rows, 'There are none.'));
  });
}
