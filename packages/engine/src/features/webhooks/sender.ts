import { randomUUID } from 'node:crypto';
import { exact } from '@animal-store/exact-json';
import { withIdsAsText } from '@animal-store/openapi-mcp';
import type { Logger } from 'pino';
import { Call, type Caller } from '../../call.ts';
import type { Database, Statement } from '../../database/database.ts';
import { reasonOf } from '../../database/postgres-errors.ts';
import { internalError, StoreError, Unavailable } from '../../errors.ts';
import type { Identified } from '../../validation/page.ts';
import { mapMembers } from '../../validation/schemas.ts';
import type { Courier, Message, Receiver } from './post.ts';
import type { Source, Sources } from './sources.ts';
import { rowsIn } from './states.ts';

/** How long (ms) one process sends before another one may. */
const lease = 6000;
/** How long (ms) it sends to an endpoint before it reads its row anew. */
const turn = 5000;

/**
 * Takes or keeps the lease, and reads some endpoints whose time has come. No row
 * means that another process has the lease, or that no endpoint exists; null
 * that none is due. A key has its scopes of now, a token those that it had.
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
        rights || case when rights ? 'subject' or scope is null then '{}'
          else jsonb_build_object('scopes', string_to_array(scope, ' ')) end as caller,
        is_tested as "isTested", subscription, arguments
      from (select *, coalesce(caller -> 'host', caller) as rights from webhook) as webhook
        left join api_key on api_key.id = (rights ->> 'id')::int
      where coalesce(until > now(), true)
        and (is_tested or (not is_off and coalesce(retry_at <= now(), true)))
        and ((rights ->> 'id')::int <= $2 or (api_key.id is not null
          and revoked_at is null and coalesce(expires_at > now(), true)))
      order by random() limit 1000
    )
    select row_to_json(due)::text from lease left join due on true`,
};

/**
 * Notes a delivery. Nothing is noted, and the row is read anew, when another
 * process has sent or a client has changed the endpoint. What a killed process
 * has not noted is sent again.
 */
const note: Statement = {
  name: 'note_delivery',
  text: `
    update webhook set
      position = case when is_taken then $4 else position end,
      is_tested = false,
      attempts = case when is_taken then 0 else attempts + 1 end,
      failed_at = case when not is_taken then coalesce(failed_at, now()) end,
      retry_at = case when not is_taken then
        now() + least(2 ^ least(attempts, 20), 3600) * interval '1 s' end,
      is_off = not is_taken and coalesce(failed_at < now() - interval '3 days', false),
      log = jsonb_path_query_array($6::jsonb || log, '$[0 to 19]')
    from (select $5::boolean as is_taken) as delivery
    where id = $1 and version = $2 and position = $3
    returning is_off::text`,
};

/** Endpoints to which a process sends at once: others wait half a second. */
const mostSending = 1000;

/** Of a host of assistants, if it has a subscription and its filter. */
interface Endpoint extends Receiver {
  readonly id: string;
  readonly types: string[];
  readonly version: number;
  readonly caller: Caller;
  readonly isTested: boolean;
  readonly arguments: object | null;
  position: string;
}

interface TypedMessage extends Message {
  readonly type: string;
}

/** Sends events to endpoints, in one process of many. */
export class Sender {
  readonly #holder = randomUUID();
  readonly #sending = new Map<string, Promise<unknown>>();
  #leasedUntil = 0;

  constructor(
    private readonly database: Database,
    private readonly sources: Sources,
    private readonly courier: Courier,
    private readonly log: Pick<Logger, 'warn' | 'error'>,
    /** The greatest id of callers without a row. */
    private readonly rowless: number,
  ) {}

  /** Begins to send to the endpoints whose time has come. */
  async begin() {
    const asked = performance.now();
    // A turn that ends meanwhile may have moved the position of its row.
    const busy = new Set(this.#sending.keys());
    const rows = await rowsIn(this.database, claim, [
      this.#holder,
      this.rowless,
    ]);
    if (rows.length > 0) this.#leasedUntil = asked + lease;
    for (const [row] of rows) {
      const endpoint: Endpoint | null = JSON.parse(row ?? 'null');
      if (!endpoint || this.#sending.size === mostSending) break;
      const { id } = endpoint;
      if (busy.has(id)) continue;
      const sent = this.#send(endpoint)
        .catch((err) => this.log.warn({ err, webhook: id }, 'nothing is sent'))
        .finally(() => this.#sending.delete(id));
      this.#sending.set(id, sent);
    }
  }

  async close() {
    this.courier.close();
    await Promise.all(this.#sending.values());
  }

  async #send(endpoint: Endpoint) {
    const end = performance.now() + turn;
    try {
      for await (const [position, message] of this.#messagesFor(endpoint)) {
        const isOurs = performance.now() < Math.min(end, this.#leasedUntil);
        if (!isOurs) return;
        const delivery = message && (await this.#deliver(endpoint, message));
        if (this.courier.isClosed) return;
        if (!(await this.#note(endpoint, position, delivery))) return;
      }
    } catch (err) {
      // The database that is away is logged once, elsewhere.
      if (err instanceof Unavailable) return;
      const { id, position } = endpoint;
      // It may no longer read what it asks for.
      const { message } = err instanceof StoreError ? err : internalError(err);
      this.log.warn({ err, webhook: id }, 'nothing is sent');
      await this.#note(endpoint, position, { error: message });
    }
  }

  /**
   * What follows in the order of an endpoint: positions where it then stands,
   * with what it asks for.
   */
  async *#messagesFor(
    endpoint: Endpoint,
  ): AsyncGenerator<[position: string, TypedMessage?], void> {
    const { caller, isTested, position, types, subscription } = endpoint;
    if (isTested) {
      const type = 'webhooks.test';
      const body = { type, timestamp: new Date(), data: {} };
      return yield [position, { id: `test_${randomUUID()}`, type, body }];
    }
    const call = Object.assign(new Call(), { caller });
    const source = this.sources.of(types, call, endpoint.arguments ?? {});
    const { service, filter, typeOf } = source;
    for (let hasNext = true; hasNext; ) {
      const query = { ...filter, after: endpoint.position, limit: 100 };
      const page = await service.list(query as never, call);
      hasNext = page.hasNext;
      for (const found of page.items) {
        const type = typeOf({ ...found });
        if (types.includes(type))
          yield [`${found.id}`, messageOf(source, type, found, subscription)];
      }
      const { id: last = endpoint.position } = page.items.at(-1) ?? {};
      if (`${last}` !== endpoint.position) yield [`${last}`];
    }
  }

  async #deliver(endpoint: Endpoint, message: TypedMessage) {
    const { id, type } = message;
    const began = performance.now();
    const answer = await this.courier.post(endpoint, message).then(
      ({ status }) => ({ status }),
      (error) => ({ error: reasonOf(error) }),
    );
    const ms = Math.round(performance.now() - began);
    return { id, type, at: new Date(), ms, ...answer };
  }

  /**
   * @param delivery undefined for events that the endpoint does not ask for
   * @returns whether the next one may follow
   */
  async #note(
    endpoint: Endpoint,
    position: string,
    delivery?: { status?: number; error?: string },
  ) {
    const { id, version, position: from, subscription } = endpoint;
    const status = delivery?.status ?? 0;
    const isSuccess = status >= 200 && status < 300;
    // A host never takes what is too large for it.
    const isTooLarge = subscription !== null && status === 413;
    const isTaken = !delivery || isSuccess || isTooLarge;
    const log = JSON.stringify(delivery ? [delivery] : []);
    const values = [id, version, from, position, isTaken, log];
    const [row] = await rowsIn(this.database, note, values);
    if (row?.[0] === 'true')
      this.log.error({ webhook: id, log }, 'a webhook is switched off');
    // A failure ends the turn, and the row is read anew.
    endpoint.position = position;
    return isTaken && row !== undefined;
  }
}

/** An event for an endpoint, or in the form of hosts of assistants. */
function messageOf(
  { name, item }: Source,
  type: string,
  found: Identified,
  subscription: string | null,
): TypedMessage {
  const values: Record<string, unknown> = { ...found };
  const { at: timestamp = new Date() } = values;
  const data = mapMembers(item.properties, (_, one) => values[one]);
  const id = `${name}_${found.id}`;
  if (!subscription) return { id, type, body: { type, timestamp, data } };
  const event = { eventId: id, name: type, timestamp, cursor: `${found.id}` };
  const asText = withIdsAsText(JSON.stringify(data, exact), item);
  return { id, type, body: { ...event, data: asText } };
}
