import { hash, randomUUID } from 'node:crypto';
import { ProtocolError, type Subscribed } from '@animal-store/openapi-mcp';
import { actorIn, type Call } from '../../call.ts';
import type { Database, Statement } from '../../database/database.ts';
import { badInput } from '../../errors.ts';
import { forbidden, hasScope } from '../../scopes.ts';
import { int64FromText } from '../../validation/int64.ts';
import { agentFor, endpointAt, post } from './post.ts';
import type { Sources } from './sources.ts';
import { most, type WebhookRecords } from './webhook-records.ts';

/** Bounds of a subscription's life (ms), and what it is by default. */
const life = { shortest: 60_000, longest: 604_800_000, usual: 86_400_000 };
/** How long (ms) a secret before the last one signs, too. */
const overlap = 300_000;
const scope = 'webhooks:write';

/** Those of a caller at an address, which have its id's beginning. */
const statement: Statement = {
  name: 'event_subscriptions',
  text: `
    select id::text, version::text, position::text, subscription, key
    from webhook where subscription like $1 || '%'`,
};
const queue = { collection: 'webhook', operation: 'subscriptions' };

/**
 * Subscriptions of hosts to events (SEP-3415). Each is an endpoint of its
 * caller, with a secret of the host, a filter and an end.
 */
export class Subscriptions {
  readonly #agent;

  constructor(
    private readonly database: Database,
    private readonly records: WebhookRecords,
    private readonly sources: Sources,
    private readonly isLocal: boolean,
  ) {
    this.#agent = agentFor(isLocal);
  }

  /** Adds it, or renews the one that is there. */
  async subscribe(asked: Subscribed, call: Call) {
    const { name, arguments: args = {}, cursor, delivery } = asked;
    const { url, secret = '' } = delivery;
    assertSecret(secret);
    this.sources.of([name], call, args);
    const { id, place, all, own } = await this.#find(asked, call);
    // A verified address is verified for all subscriptions of its caller.
    if (all.length === 0)
      await this.#verify(`${place}${'0'.repeat(16)}`, asked);
    const until = new Date(Date.now() + lifeOf(asked));
    const sending = { until, caller: call.caller };
    const [row, version, position, , key] = own ?? [];
    const isNew = row === undefined;
    if (isNew) await this.#assertRoom(call);
    const isRotated = !isNew && key !== secret;
    const previousUntil = new Date(Date.now() + overlap);
    const rotated = { key: secret, previousKey: key, previousUntil };
    const start = int64FromText(`${cursor}`);
    if (isNew)
      await this.records.create(
        {
          ...{ ...sending, key: secret, subscription: id, arguments: args },
          ...{ url, types: [name], position: start },
        } as never,
        call,
      );
    else
      await this.records.change(
        int64FromText(row),
        { ...sending, ...(isRotated && rotated), version: Number(version) },
        call,
      );
    const refreshBefore = until.toISOString();
    return { id, refreshBefore, cursor: position ?? cursor, truncated: false };
  }

  async unsubscribe(asked: Subscribed, call: Call) {
    const { id, all } = await this.#find(asked, call);
    // Two at once may have added it twice.
    const own = all.filter((row) => row[3] === id);
    if (own.length === 0)
      throw new ProtocolError(-32011, 'There is no such subscription.', {
        kind: 'subscription',
      });
    for (const [row = ''] of own)
      await this.records.remove(int64FromText(row), {} as never, call);
    return {};
  }

  async #find(
    { name, arguments: args = {}, delivery }: Subscribed,
    call: Call,
  ) {
    const { caller } = call;
    if (!caller || !hasScope(caller, scope)) throw forbidden(scope, caller);
    const { href } = endpointAt(delivery.url, this.isLocal);
    const place = `sub_${shortHash([actorIn(call), href])}`;
    const entries = Object.entries(args).toSorted();
    const id = place + shortHash([name, entries]);
    const all = await this.database.inTurn(call, queue, () =>
      this.database.rows<string[]>(statement, [place]),
    );
    return { id, place, all, own: all.find((row) => row[3] === id) };
  }

  async #assertRoom(call: Call) {
    const isBound = !hasScope(call.caller, 'webhooks:all');
    if (!isBound || (await this.records.count({}, call)).count < most) return;
    throw new ProtocolError(-32013, `A caller has at most ${most} webhooks.`, {
      limit: 'subscriptions',
      max: most,
    });
  }

  /** @throws ProtocolError for an endpoint that does not want events */
  async #verify(subscription: string, { delivery }: Subscribed) {
    const { url, secret = '' } = delivery;
    const challenge = randomUUID();
    const body = JSON.stringify({ type: 'verification', challenge });
    const id = `msg_verification_${randomUUID()}`;
    const message = { id, body, secrets: [secret], subscription };
    const { signal } = new AbortController();
    const answer = await post(
      endpointAt(url, this.isLocal),
      message,
      this.#agent,
      signal,
    ).catch((error) => ({ status: 0, text: '', reason: reasonOf(error) }));
    const { status, text } = answer;
    const isTaken = status >= 200 && status < 300;
    if (isTaken && text.includes(`"${challenge}"`)) return;
    const ofStatus = status >= 400 ? `http_${Math.trunc(status / 100)}xx` : '';
    const known = 'reason' in answer ? answer.reason : ofStatus;
    const reason = known || 'challenge_failed';
    const told = 'The endpoint has not answered the challenge.';
    throw new ProtocolError(-32015, told, { reason });
  }
}

const shortHash = (value: unknown) =>
  hash('sha256', JSON.stringify(value)).slice(0, 16);

function lifeOf({ ttlMs }: Subscribed) {
  const wanted = ttlMs ?? life.usual;
  return Math.min(Math.max(wanted, life.shortest), life.longest);
}

function assertSecret(secret: string) {
  const [, code = ''] = /^whsec_([\w+/]+=*)$/.exec(secret) ?? [];
  const { length } = Buffer.from(code, 'base64');
  if (length < 24 || length > 64)
    throw badInput('secret must be whsec_ and base64 of 24 to 64 bytes.');
}

/** It tells nothing else of what answers there. */
function reasonOf({ name, code = '' }: { name: string; code?: string }) {
  if (name === 'TimeoutError' || code === 'ETIMEDOUT') return 'timeout';
  return /TLS|CERT|SSL/.test(code) ? 'tls_error' : 'connection_refused';
}
