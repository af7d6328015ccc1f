import { openModules } from '../../api/module.ts';
import { Call } from '../../call.ts';
import { show, table } from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import { int64FromText } from '../../validation/int64.ts';
import { validator } from '../../validation/validator.ts';
import { transitions, webhook } from './webhook.ts';
import type { WebhookRecords } from './webhook-records.ts';
import { webhooksModule } from './webhooks.module.ts';

interface Given {
  id?: string;
  position?: string;
  url?: string;
  types?: string;
  json?: boolean;
}

const inputOf = validator(webhook.schemas.input);
const operator = Call.ofOperator();
const { rotate, test } = transitions;
const changes: Record<string, (item: object, given: Given) => object> = {
  rotate: rotate.change,
  test: test.change,
  replay: (_, { position = '' }) => ({ position: int64FromText(position) }),
};

async function act(all: WebhookRecords, action: string, given: Given) {
  const { id = '0', url = '', types = '' } = given;
  if (action === 'create')
    return [
      await all.create(inputOf({ url, types: types.split(',') }), operator),
    ];
  if (action === 'list') {
    const { items } = await all.list(
      { after: id, limit: 100 } as never,
      operator,
    );
    return items;
  }
  const item = await all.find(int64FromText(id), operator);
  if (!item) throw new Error(`There is no webhook ${id}.`);
  if (action === 'remove') {
    await all.remove(item.id, {} as never, operator);
    return [item];
  }
  const change = changes[action];
  if (!change) throw new Error(`There is no action ${action}.`);
  const { version } = item;
  const changed = { ...change(item, given), version };
  return [(await all.change(item.id, changed, operator)) ?? item];
}

export async function runWebhooks(
  stores: Stores,
  action: string,
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
