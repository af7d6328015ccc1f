import { once } from 'node:events';
import {
  fromJsonSchema,
  ProtocolError,
  type Server,
  type ServerContext,
  SUBSCRIPTION_ID_META_KEY,
} from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import type {
  Item,
  Refusal,
  RestOperation,
  Schema,
  Tool,
  Wording,
} from './tools.ts';

/** What happens to items of a list (SEP-3415). */
export interface EventType {
  /** Like `pets.added`. */
  name: string;
  description: string;
  /** The list whose ids are its positions, in the order of the events. */
  list: { name: string; tool: string };
  /** Arguments of the list. */
  given?: Record<string, unknown>;
  /** The member of an item that says when it happened. */
  time: string;
  /** Whether an item of the list is such an event. */
  isOf?(item: Item): boolean;
}

/** An event type, and the tool that lists its events. */
interface Source {
  readonly type: EventType;
  readonly tool: Tool;
}

/** What an assistant asks for. */
interface Asked {
  name: string;
  arguments?: Record<string, unknown>;
  cursor?: string | null;
  maxAgeMs?: number;
  maxEvents?: number;
}

/** What a host asks for, with the position where it begins. */
export interface Subscribed extends Asked {
  delivery: { mode?: string; url: string; secret?: string };
  ttlMs?: number | null;
}

/** Sends events to endpoints of hosts. */
export interface Subscriptions {
  subscribe(asked: Subscribed): Promise<object>;
  unsubscribe(asked: Subscribed): Promise<object>;
}

/** Capabilities: where the SEP has it, and where ChatGPT looks for it. */
export const eventCapabilities = {
  events: {},
  extensions: { 'io.modelcontextprotocol/events': {} },
};

const text = { type: 'string' };
const whole = { type: 'integer', minimum: 0 };
const asked = {
  type: 'object',
  properties: {
    name: text,
    arguments: { type: 'object' },
    cursor: { type: ['string', 'null'] },
    maxAgeMs: whole,
    maxEvents: { type: 'integer', minimum: 1 },
  },
  required: ['name'],
};

const delivery = {
  type: 'object',
  properties: { mode: { const: 'webhook' }, url: text, secret: text },
  required: ['url'],
};
const subscribing = {
  type: 'object',
  properties: {
    ...asked.properties,
    delivery,
    ttlMs: { type: ['integer', 'null'], minimum: 0 },
  },
  required: ['name', 'delivery'],
};

/** Events of a poll, unless it asks for fewer. */
const most = 50;
/** When (ms) the next poll should follow. */
const nextPollMs = 2000;

/** Arguments of a list that are no filter. */
const paging = ['after', 'before', 'limit', 'sort', 'follow'];

interface Service extends Pick<Wording, 'describe'> {
  isListed(operation: RestOperation, request: FastifyRequest): boolean;
  subscriptions?(request: FastifyRequest): Subscriptions | undefined;
}

export function sourcesOf(
  types: readonly EventType[],
  tools: ReadonlyMap<string, Tool>,
) {
  const sources = types.flatMap((type) => {
    const tool = tools.get(type.list.tool);
    return tool ? [[type.name, { type, tool }] as const] : [];
  });
  return new Map<string, Source>(sources);
}

/**
 * Adds the methods of events for the caller of a request.
 *
 * @param mayStream false for clients of earlier revisions
 */
export function serveEvents(
  server: Server,
  sources: ReadonlyMap<string, Source>,
  { isListed, subscriptions, describe }: Service,
  request: FastifyRequest,
  mayStream: boolean,
) {
  const endpoints = subscriptions?.(request);
  const delivery = [
    'poll',
    ...(mayStream ? ['push'] : []),
    ...(endpoints ? ['webhook'] : []),
  ];
  const subscribed = fromJsonSchema<Subscribed>(subscribing as never);
  const params = fromJsonSchema<Asked>(asked as never);
  const any = fromJsonSchema({ type: 'object' });
  server.setRequestHandler('events/list', { params: any }, () => {
    const listed = [...sources.values()].filter(({ tool }) =>
      isListed(tool.operation, request),
    );
    return {
      events: listed.map((one) => ({ ...definitionOf(one), delivery })),
    };
  });
  server.setRequestHandler('events/poll', { params }, (given) =>
    poll(sourceOf(given), given),
  );
  if (mayStream)
    server.setRequestHandler('events/stream', { params }, (given, context) =>
      stream(sourceOf(given), given, context),
    );

  for (const name of ['subscribe', 'unsubscribe'] as const) {
    const method = `events/${name}`;
    server.setRequestHandler(method, { params: subscribed }, async (given) => {
      const source = sourceOf(given);
      if (!endpoints)
        throw new ProtocolError(-32014, 'Events are sent to no endpoint.', {
          feature: 'deliveryMode',
          value: 'webhook',
        });
      // The list checks rights, filters and cursor.
      const { cursor: now } = await poll(source, { ...given, maxEvents: 1 });
      const cursor = given.cursor ?? now;
      const work = endpoints[name]({ ...given, cursor });
      return { ...(await work.catch(refuse)) };
    });
  }

  /** A refusal of the service in codes of MCP. */
  function refuse(error: Error & { status?: number }): never {
    if (error instanceof ProtocolError) throw error;
    const { status = 500 } = error;
    if (status < 500) throw failureOf({ status, refused: describe(error) });
    request.log.error({ err: error }, 'a subscription has failed');
    throw new ProtocolError(-32603, 'The subscription has failed.');
  }

  function sourceOf({ name, arguments: args = {} }: Asked) {
    const source = sources.get(name);
    if (!source)
      throw new ProtocolError(-32011, 'There is no event with this name.', {
        kind: 'event',
      });
    const known = Object.keys(filtersOf(source));
    if (!Object.keys(args).every((one) => known.includes(one))) {
      const names = known.join(', ') || 'none';
      throw new ProtocolError(
        -32602,
        `An argument is unknown; known: ${names}`,
      );
    }
    return source;
  }

  /** Arguments of the list. */
  const argumentsOf = ({ type }: Source, given: Asked, page: object) => ({
    ...given.arguments,
    ...page,
    ...type.given,
  });

  async function ask(source: Source, given: Asked, page: object) {
    const args = argumentsOf(source, given, page);
    const answer = await source.tool.ask(args, request);
    if (answer.refused !== undefined) throw failureOf(answer);
    const { items = [], next } = answer.found ?? {};
    return { items, hasMore: next !== undefined };
  }

  async function poll(source: Source, given: Asked) {
    const { cursor, maxEvents = most } = given;
    const quiet = { events: [], truncated: false, hasMore: false, nextPollMs };
    // From now on: after the newest one.
    if (typeof cursor !== 'string') {
      const page = { sort: 'id_desc', limit: '1' };
      const { items } = await ask(source, given, page);
      return { ...quiet, cursor: items[0]?.id ?? '0' };
    }
    const limit = `${Math.min(maxEvents, most)}`;
    const page = { after: cursor, limit };
    const { items, hasMore } = await ask(source, given, page);
    const found = items.flatMap((item) => occurrencesOf(source, item));
    const events = found.filter((one) => !isTooOld(one, given));
    return {
      ...quiet,
      events,
      cursor: items.at(-1)?.id ?? cursor,
      truncated: events.length < found.length,
      hasMore,
    };
  }

  /** Ends with the connection, or with the rights of its key. */
  async function stream(
    source: Source,
    given: Asked,
    { mcpReq: { id: subscription, notify, signal } }: ServerContext,
  ) {
    const { cursor: after } = given;
    const page = typeof after === 'string' ? { after } : {};
    const args = argumentsOf(source, given, page);
    const followed = await source.tool.follow(args, request, signal);
    if ('refused' in followed) throw failureOf(followed);
    const _meta = { [SUBSCRIPTION_ID_META_KEY]: subscription };
    const tell = async (name: string, params: object) => {
      const method = `notifications/events/${name}`;
      await notify({ method, params: { ...params, _meta } });
      const { socket } = request.raw;
      if (socket.writableNeedDrain) await once(socket, 'drain', { signal });
    };
    let cursor = after;
    let truncated = false;
    try {
      for await (const { id, item, error } of followed.events) {
        if (error) {
          const failure = { code: -32012, message: error };
          await tell('terminated', { error: failure });
          break;
        }
        cursor = id ?? cursor;
        const found = item ? occurrencesOf(source, item) : [];
        const isOld = found.some((one) => isTooOld(one, given));
        if (isOld && !truncated) {
          truncated = true;
          await tell('active', { cursor, truncated });
        }
        for (const one of isOld ? [] : found)
          await tell('event', { ...one, cursor });
        if (!item)
          await tell(id ? 'active' : 'heartbeat', { cursor, truncated });
      }
    } catch (error) {
      // The client continues at the cursor after a cut.
      request.log.debug({ err: error }, 'a stream of events is cut');
    }
    return {};
  }
}

function definitionOf({ type, tool }: Source) {
  const { items } = (tool.definition.outputSchema as Schema).properties ?? {};
  return {
    name: type.name,
    description: type.description,
    inputSchema: { type: 'object', properties: filtersOf({ type, tool }) },
    payloadSchema: items?.items,
  };
}

function filtersOf({ type: { given = {} }, tool }: Source) {
  const { properties = {} } = tool.definition.inputSchema as Schema;
  const others = [...paging, ...Object.keys(given)];
  return Object.fromEntries(
    Object.entries(properties).filter(([name]) => !others.includes(name)),
  );
}

/** @returns none for an item that is another event */
function occurrencesOf({ type }: Source, data: Item) {
  const { name, list, time, isOf = () => true } = type;
  if (!isOf(data)) return [];
  const timestamp = `${data[time] ?? new Date().toISOString()}`;
  return [{ eventId: `${list.name}_${data.id}`, name, timestamp, data }];
}

function isTooOld({ timestamp }: { timestamp: string }, { maxAgeMs }: Asked) {
  const age = Date.now() - Date.parse(timestamp);
  return maxAgeMs !== undefined && age > maxAgeMs;
}

/** A refusal of the list in codes of MCP. */
function failureOf({ status, refused }: Refusal) {
  const codes: Record<number, number> = {
    400: -32602,
    401: -32012,
    403: -32012,
    429: -32013,
  };
  return new ProtocolError(codes[status] ?? -32603, refused);
}
