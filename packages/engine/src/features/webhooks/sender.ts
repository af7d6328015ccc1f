import { randomUUID } from 'node:crypto';
import { exact } from '@animal-store/exact-json';
import { withIdsAsText } from '@animal-store/openapi-mcp';
import type { Logger } from 'pino';
import { Call, type Caller } from '../../call.ts';
import type { Database, Statement } from '../../database/database.ts';
import { StoreError, Unavailable } from '../../errors.ts';
import { mapMembers } from '../../validation/schemas.ts';
import { agentFor, endpointAt, post } from './post.ts';
import type { Sources } from './sources.ts';
import { rowsIn } from './states.ts';

/** How long (ms) one process sends before another one may. */
const lease = 6000;
/** How long (ms) it sends to an endpoint before it reads its row anew. */
const turn = 5000;

/**
 * Takes or keeps the lease, and reads the endpoints whose time has come. What a
 * key may do is read anew, what a token may do is not known elsewhere.
 */
const claim: Statement = {
  name: 'claim_webhooks',
  text: `
    with lease as (
      insert into webhook_lease (id, holder, until)
      select 1, $1, now() + interval '${lease} ms' from webhook limit 1
      on conflict (id) do update
        set holder = $1, until = excluded.until
        where webhook_lease.holder = $1 or webhook_lease.until < now()
      returning id
    ), expired as (
      delete from webhook where until < now()
    ), due as (
      select webhook.id::text, url, types, position::text, webhook.version,
        array_remove(array[key, case when previous_until > now() then previous_key end], null) as secrets,
        caller || case when caller ? 'subject' or scope is null then '{}'
          else jsonb_build_object('scopes', string_to_array(scope, ' ')) end as caller,
        is_tested as "isTested", subscription, arguments
      from webhook left join api_key on api_key.id = (caller ->> 'id')::int
      where coalesce(until > now(), true)
        and (is_tested or not is_off and coalesce(retry_at <= now(), true))
        and ((caller ->> 'id')::int < 1 or revoked_at is null
          and coalesce(expires_at > now(), api_key.id is not null))
    )
    select row_to_json(due)::text from lease left join due on true`,
};

/**
 * Notes a delivery. Nothing is noted, and the row is read anew, when another
 * process has sent or a client has changed the endpoint.
 */
const note: Statement = {
  name: 'note_delivery',
  text: `
    update webhook set
      position = case when $5::boolean then $4 else position end,
      is_tested = false,
      attempts = case when $5 then 0 else attempts + 1 end,
      failed_at = case when not $5 then coalesce(failed_at, now()) end,
      retry_at = case when not $5 then
        now() + least(2 ^ least(attempts, 20), 3600) * interval '1 s' end,
      is_off = not $5 and coalesce(failed_at < now() - interval '3 days', false),
      log = jsonb_path_query_array($6::jsonb || log, '$[0 to 19]')
    where id = $1 and version = $2 and position = $3
    returning is_off::text`,
};

interface Endpoint {
  readonly id: string;
  readonly url: string;
  readonly types: string[];
  readonly version: number;
  readonly secrets: string[];
  readonly caller: Caller;
  readonly isTested: boolean;
  /** Of a host of assistants, and its filter. */
  readonly subscription: string | null;
  readonly arguments: object | null;
  position: string;
}

/** What follows in the order of an endpoint. */
interface Step {
  /** Where the endpoint stands then. */
  readonly position: string;
  /** Absent for what the endpoint does not ask for. */
  readonly id?: string;
  readonly type?: string;
  readonly message?: object;
}

/** Sends events to endpoints, in one process of many. */
export class Sender {
  readonly #holder = randomUUID();
  readonly #sending = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #agent;
  #leasedUntil = 0;

  /** @param isLocal for development */
  constructor(
    private readonly database: Database,
    private readonly sources: Sources,
    private readonly isLocal: boolean,
    private readonly log: Pick<Logger, 'warn' | 'error'>,
  ) {
    this.#agent = agentFor(isLocal);
  }

  /** Begins to send to the endpoints whose time has come. */
  async begin() {
    const asked = performance.now();
    const rows = await rowsIn(this.database, claim, [this.#holder]);
    if (rows.length > 0) this.#leasedUntil = asked + lease;
    for (const [row] of rows) {
      const endpoint: Endpoint | null = JSON.parse(row ?? 'null');
      if (!endpoint || this.#sending.has(endpoint.id)) continue;
      const { id } = endpoint;
      const sent = this.#send(endpoint)
        .catch((err) => this.log.warn({ err, webhook: id }, 'nothing is sent'))
        .finally(() => this.#sending.delete(id));
      this.#sending.set(id, sent);
    }
  }

  async close() {
    this.#closing.abort();
    await Promise.all(this.#sending.values());
    this.#agent.destroy();
  }

  async #send(endpoint: Endpoint) {
    const end = performance.now() + turn;
    try {
      for await (const step of this.#stepsOf(endpoint)) {
        const isOurs = performance.now() < Math.min(end, this.#leasedUntil);
        if (!isOurs || !(await this.#take(endpoint, step))) return;
      }
    } catch (error) {
      if (!(error instanceof StoreError) || error instanceof Unavailable)
        throw error;
      // It may no longer read what it asks for.
      const { position } = endpoint;
      await this.#note(endpoint, position, [{ error: error.message }], false);
    }
  }

  async *#stepsOf(endpoint: Endpoint): AsyncGenerator<Step, void> {
    const { caller, isTested, position, types, subscription } = endpoint;
    if (isTested) {
      const id = `test_${randomUUID()}`;
      const timestamp = new Date();
      const type = 'webhooks.test';
      const message = { type, timestamp, data: {} };
      return yield { position, id, type, message };
    }
    const call = Object.assign(new Call(), { caller });
    const { name, service, filter, item, typeOf } = this.sources.of(
      types,
      call,
      endpoint.arguments ?? {},
    );
    for (let hasNext = true; hasNext; ) {
      const query = { ...filter, after: endpoint.position, limit: 100 };
      const page = await service.list(query as never, call);
      hasNext = page.hasNext;
      for (const found of page.items) {
        const type = typeOf(found);
        if (!types.includes(type)) continue;
        const values = found as unknown as Record<string, unknown>;
        const { at: timestamp = new Date() } = values as { at?: Date };
        const data = mapMembers(item.properties, (_, one) => values[one]);
        const id = `${name}_${found.id}`;
        const at = `${found.id}`;
        const message = subscription
          ? {
              ...{ eventId: id, name: type, timestamp, cursor: at },
              data: withIdsAsText(JSON.stringify(data, exact), item),
            }
          : { type, timestamp, data };
        yield { position: at, id, type, message };
      }
      const { id: last = endpoint.position } = page.items.at(-1) ?? {};
      if (`${last}` !== endpoint.position) yield { position: `${last}` };
    }
  }

  /** @returns whether the next one may follow */
  async #take(endpoint: Endpoint, step: Step) {
    const { position, id = '', type, message } = step;
    if (!message) return this.#note(endpoint, position, [], true);
    const { secrets, subscription } = endpoint;
    const { signal } = this.#closing;
    const body = JSON.stringify(message, exact);
    const began = performance.now();
    const answer: { status?: number; error?: string } = {};
    try {
      const url = endpointAt(endpoint.url, this.isLocal);
      const sent = { id, body, secrets, subscription };
      const agent = this.#agent;
      answer.status = (await post(url, sent, agent, signal)).status;
    } catch (error) {
      answer.error = (error as Error).message;
    }
    if (signal.aborted) return false;
    const ms = Math.round(performance.now() - began);
    const { status = 0 } = answer;
    // A host never takes what is too large for it.
    const isTooLarge = subscription !== null && status === 413;
    const isTaken = isTooLarge || (status >= 200 && status < 300);
    const delivery = { id, type, at: new Date(), ms, ...answer };
    return this.#note(endpoint, position, [delivery], isTaken);
  }

  async #note(
    endpoint: Endpoint,
    position: string,
    deliveries: object[],
    isTaken: boolean,
  ) {
    const { id, version, position: from } = endpoint;
    const log = JSON.stringify(deliveries);
    const values = [id, version, from, position, isTaken, log];
    const [row] = await rowsIn(this.database, note, values);
    endpoint.position = position;
    if (row?.[0] === 'true')
      this.log.error({ webhook: id, log }, 'a webhook is switched off');
    return isTaken && row !== undefined;
  }
}
