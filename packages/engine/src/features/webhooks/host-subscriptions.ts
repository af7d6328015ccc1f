import { hash, randomUUID } from 'node:crypto';
import { exact } from '@animal-store/exact-json';
import {
  type Asked,
  ProtocolError,
  type StartAt,
} from '@animal-store/openapi-mcp';
import { actorIn, type Call } from '../../call.ts';
import type { Database, Statement } from '../../database/database.ts';
import { badInput } from '../../errors.ts';
import { forbidden, hasScope } from '../../scopes.ts';
import type { Courier } from './post.ts';
import type { Sources } from './sources.ts';
import { rowsIn } from './states.ts';
import { inputOf, WebhookEntity } from './webhook.ts';
import { most, type WebhookRecords } from './webhook-records.ts';

/** Bounds of a subscription's life (ms), and what it is by default. */
const life = { shortest: 60_000, longest: 604_800_000, usual: 86_400_000 };
const scope = 'webhooks:write';

/** Those of a caller at an address, whose ids begin alike. */
const known: Statement = {
  name: 'known_subscriptions',
  text: `
    select subscription, position::text from webhook
    where subscription like $1 || '%'`,
};

/**
 * Adds one, or renews it. The secret before the last one signs for five minutes
 * more. An earlier release finds no caller in it, and sends nothing.
 */
const store: Statement = {
  name: 'store_subscription',
  isWrite: true,
  text: `
    insert into webhook (subscription, owner, url, types, arguments, key, until, position, caller)
    values ($1, $2, $3, $4, $5, $6, $7, $8, jsonb_build_object('host', $9::jsonb))
    on conflict (subscription) do update set
      caller = excluded.caller, until = excluded.until, key = excluded.key,
      previous_key = coalesce(nullif(webhook.key, excluded.key), webhook.previous_key),
      previous_until = case when webhook.key = excluded.key then webhook.previous_until
        else now() + interval '5 minutes' end,
      position = greatest(webhook.position, excluded.position),
      version = webhook.version + (webhook.key <> excluded.key)::int,
      is_off = false, attempts = 0, failed_at = null, retry_at = null
    returning position::text`,
};

const remove: Statement = {
  name: 'remove_subscription',
  isWrite: true,
  text: 'delete from webhook where subscription = $1 returning subscription',
};

/**
 * Subscriptions of hosts to events (SEP-3415). Each is an endpoint of its
 * caller, with a secret of the host, a filter and an end.
 */
export class HostSubscriptions {
  constructor(
    private readonly database: Database,
    private readonly records: WebhookRecords,
    private readonly sources: Sources,
    private readonly courier: Courier,
  ) {}

  /** Adds it, or renews the one that is there. */
  async subscribe(asked: Asked, { call }: { call: Call }, startAt: StartAt) {
    const { name, arguments: args = {}, delivery, ttlMs } = asked;
    const { url, secret = '' } = delivery;
    if (!/^whsec_[\w+/]{32,86}={0,2}$/.test(secret))
      throw badInput('secret must be whsec_ and base64 of 24 to 64 bytes.');
    inputOf({ url, types: [name] });
    const { place, id } = this.#idsOf(asked, call);
    this.sources.of([name], call, args);
    const rows = await rowsIn(this.database, known, [place]);
    const positions = new Map(rows as Array<[string, string]>);
    const start = await startAt(positions.get(id) ?? asked.cursor);
    const assertRoom = async () => {
      if (positions.has(id) || (await this.records.hasRoom(call))) return;
      throw new ProtocolError(
        -32013,
        `A caller has at most ${most} webhooks.`,
        { limit: 'subscriptions', max: most },
      );
    };
    await assertRoom();
    // A verified address is verified for all subscriptions of its caller.
    if (positions.size === 0) await this.#verify(id, url, secret);
    const wanted = Math.max(ttlMs ?? life.usual, life.shortest);
    const until = new Date(Date.now() + Math.min(wanted, life.longest));
    const { owner } = this.records.owned.claim<{ owner?: string }>({}, call);
    const [[cursor] = []] = await this.database.transaction(
      call,
      { creates: [WebhookEntity] },
      async () => {
        // The address may have taken its time.
        await assertRoom();
        return rowsIn(this.database, store, [
          id,
          owner,
          url,
          [name],
          args,
          secret,
          until,
          start.cursor,
          call.caller,
        ]);
      },
    );
    return { id, refreshBefore: until.toISOString(), ...start, cursor };
  }

  async unsubscribe(asked: Asked, { call }: { call: Call }) {
    const { id } = this.#idsOf(asked, call);
    const removed = await rowsIn(this.database, remove, [id]);
    if (removed.length > 0) return {};
    throw new ProtocolError(-32011, 'There is no such subscription.', {
      kind: 'subscription',
    });
  }

  /** @throws StoreError BAD_USER_INPUT, FORBIDDEN */
  #idsOf({ name, arguments: args = {}, delivery }: Asked, call: Call) {
    if (!hasScope(call.caller, scope)) throw forbidden(scope, call.caller);
    const { href } = this.courier.urlOf(delivery.url);
    // A user may belong to several tenants.
    const caller = [actorIn(call)].concat(call.caller?.tenant ?? []);
    const place = `sub_${shortHash([...caller, href])}`;
    const filter = Object.entries(args).toSorted();
    return { place, id: place + shortHash([name, filter]) };
  }

  /** @throws ProtocolError for an endpoint that does not want events */
  async #verify(subscription: string, url: string, secret: string) {
    const challenge = randomUUID();
    const body = { type: 'verification', challenge };
    const id = `msg_verification_${randomUUID()}`;
    const receiver = { url, secrets: [secret], subscription };
    const reason = await this.courier
      .post(receiver, { id, body })
      .then(({ status, text }) => {
        if (status >= 400) return `http_${Math.trunc(status / 100)}xx`;
        const isTaken = status < 300 && text.includes(`"${challenge}"`);
        return isTaken ? undefined : 'challenge_failed';
      }, reasonOf);
    if (!reason) return;
    throw new ProtocolError(
      -32015,
      'The endpoint has not answered the challenge.',
      { reason },
    );
  }
}

const shortHash = (value: unknown) =>
  hash('sha256', JSON.stringify(value, exact)).slice(0, 16);

/** It tells nothing else of what answers there. */
function reasonOf({ name, code = '' }: { name: string; code?: string }) {
  if (name === 'TimeoutError' || code === 'ETIMEDOUT') return 'timeout';
  return /TLS|CERT|SSL/.test(code) ? 'tls_error' : 'connection_refused';
}
