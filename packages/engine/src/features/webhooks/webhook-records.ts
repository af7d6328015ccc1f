import type { Call } from '../../call.ts';
import type { Database } from '../../database/database.ts';
import { badInput, orError } from '../../errors.ts';
import { Records } from '../../records/records.ts';
import { hasScope } from '../../scopes.ts';
import type { Int64 } from '../../validation/int64.ts';
import type { Courier } from './post.ts';
import type { Sources } from './sources.ts';
import {
  type NewWebhook,
  newSecret,
  sendingTo,
  type Webhook,
  WebhookEntity,
  webhook,
} from './webhook.ts';

/** Endpoints of a caller without `all`. */
export const most = 100;
/** A change of it, also a test, makes it active again. */
const active = { isOff: false, attempts: 0, failedAt: null, retryAt: null };

/** Endpoints, of those who have created them. */
export class WebhookRecords extends Records<Webhook, NewWebhook> {
  constructor(
    database: Database,
    private readonly sources: Sources,
    courier: Courier,
  ) {
    super(database, WebhookEntity, {
      ...webhook.lists,
      async check({ url, types, position }, call, stored) {
        if (position === null) throw badInput('position must be an integer.');
        if (url !== undefined) courier.urlOf(url);
        const source = types && sources.of(types, call);
        if (!source || !stored || position !== undefined) return;
        const former = orError(() => sources.of(stored.types, call));
        if (former.name !== source.name)
          throw badInput(
            'position must be given, because that of these types is another one.',
          );
      },
    });
    // One transaction counts and adds after another.
    database.followed.set(this.table.name, 'locked');
  }

  override async create(input: NewWebhook, call: Call) {
    const position = input.position ?? (await this.#lastOf(input.types, call));
    const { owner = 'key:0' } = input as Partial<Webhook>;
    if (owner !== 'key:0')
      throw badInput('owner must be key:0: it gets what an operator may read.');
    const frame = { creates: [WebhookEntity], input };
    // By id, because a transaction that is repeated makes or finds another row.
    const secrets = new Map<Int64, string>();
    const added = await this.database.transaction(call, frame, async () => {
      if (!(await this.hasRoom(call)))
        throw badInput(`A caller has at most ${most} webhooks.`);
      const { caller } = call;
      const more = { caller, key: newSecret(), ...input, position };
      const created = await super.create(more, call);
      // A trial stores none.
      if (!call.onRolledBack) secrets.set(created.id, more.key);
      // The answer is stored for repetitions, without the secret.
      return { ...created, key: '' };
    });
    const secret = secrets.get(added.id);
    if (secret) return { ...added, secret };
    const stored = await this.find(added.id, call);
    return { ...added, secret: stored ? sendingTo(stored).key : null };
  }

  async hasRoom(call: Call) {
    if (hasScope(call.caller, 'webhooks:all')) return true;
    return (await this.count({}, call)).count < most;
  }

  async #lastOf(types: readonly string[], call: Call) {
    const { service, filter } = this.sources.of(types, call);
    const last = { ...filter, sort: 'id_desc', limit: 1 };
    const { items } = await service.list(last as never, call);
    return items[0]?.id ?? 0;
  }

  override async change(
    id: Int64 | undefined,
    change: Partial<Webhook>,
    call: Call,
  ) {
    const { caller } = call;
    const { url, version } = change;
    const stored = url && (await this.find(id, call));
    const isMoved =
      stored && (stored.url !== url || stored.version !== version);
    const more = { ...active, ...(isMoved && { caller }), ...change };
    const changed = await super.change(id, more as never, call);
    // A trial stores none.
    if (!changed || call.onRolledBack) return changed;
    return { ...changed, secret: sendingTo(changed).key };
  }
}
