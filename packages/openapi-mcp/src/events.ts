import {
  fromJsonSchema,
  ProtocolError,
  type Server,
  type ServerContext,
  SUBSCRIPTION_ID_META_KEY,
} from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import {
  type Item,
  Refused,
  type RestOperation,
  type Schema,
  type Tool,
  type Wording,
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
  /** Of a list that forgets items: what it keeps. */
  kept?(request: FastifyRequest): Promise<Kept>;
}

/** Positions: the one before the oldest item, and the last visible one. */
interface Kept {
  readonly before: bigint;
  readonly last: bigint;
}

/** What an assistant asks for; a host says where it is sent, too. */
export interface Asked {
  name: string;
  arguments?: object;
  cursor?: string | null;
  maxAgeMs?: number;
  maxEvents?: number;
  delivery: { url: string; secret?: string };
  ttlMs?: number | null;
}

/**
 * Checks what is asked for, and finds where it begins: whether it skips events
 * after the cursor.
 */
export type StartAt = (
  cursor: Asked['cursor'],
) => Promise<{ cursor: string; truncated: boolean }>;

/** Sends events to endpoints of hosts. */
export interface Subscriptions {
  subscribe(
    asked: Asked,
    request: FastifyRequest,
    startAt: StartAt,
  ): Promise<object>;
  unsubscribe(asked: Asked, request: FastifyRequest): Promise<object>;
}

/** Capabilities: where the SEP has it, and where ChatGPT looks for it. */
export const eventCapabilities = {
  events: {},
  extensions: { 'io.modelcontextprotocol/events': {} },
};

const text = { type: 'string' };
const members = {
  name: text,
  arguments: { type: 'object' },
  cursor: { type: ['string', 'null'] },
  maxAgeMs: { type: 'integer', minimum: 0 },
  maxEvents: { type: 'integer', minimum: 1 },
  delivery: {
    type: 'object',
    properties: { mode: { const: 'webhook' }, url: text, secret: text },
    required: ['url'],
  },
  ttlMs: { type: ['integer', 'null'], minimum: 0 },
};

const paramsWith = (...required: Array<keyof typeof members>) => {
  const schema = { type: 'object', properties: members, required };
  return { params: fromJsonSchema<Asked>(schema as never) };
};

/** Events of a poll, unless it asks for fewer. */
const most = 50;
/** When (ms) the next poll should follow. */
const nextPollMs = 2000;

/** Arguments of a list that are no filter. */
const paging = ['after', 'before', 'limit', 'sort', 'follow'];

interface Service extends Pick<Wording, 'describe'> {
  isListed(operation: RestOperation, request: FastifyRequest): boolean;
  subscriptions?(): Subscriptions | undefined;
}

/** An event type as a list shows it, and the tool that lists its events. */
interface Source {
  readonly type: EventType;
  readonly tool: Tool;
  readonly definition: object;
  readonly filters: object;
}

function sourceOf(type: EventType, tool: Tool): Source {
  const { name, description, given = {} } = type;
  const { inputSchema, outputSchema } = tool.definition;
  const { properties = {} } = inputSchema as Schema;
  const { items } = (outputSchema as Schema).properties ?? {};
  const others = [...paging, ...Object.keys(given)];
  const shown = Object.entries(properties).filter(
    ([one]) => !others.includes(one),
  );
  const filters = Object.fromEntries(shown);
  const definition = {
    name,
    description,
    inputSchema: { type: 'object', properties: filters },
    payloadSchema: items?.items,
  };
  return { type, tool, definition, filters };
}

/**
 * @returns adds the methods of events for the caller of a request, without
 *   streams for clients of earlier revisions; undefined when no tool lists any
 */
export function eventsOf(
  types: readonly EventType[],
  tools: ReadonlyMap<string, Tool>,
  { isListed, subscriptions, describe }: Service,
) {
  const sources = new Map<string, Source>();
  for (const type of types) {
    const tool = tools.get(type.list.tool);
    if (tool) sources.set(type.name, sourceOf(type, tool));
  }
  // The SDK keeps for ever what it has compiled.
  const any = paramsWith();
  const named = paramsWith('name');
  const addressed = paramsWith('name', 'delivery');
  return sources.size > 0 ? serveEvents : undefined;

  function serveEvents(
    server: Server,
    request: FastifyRequest,
    mayStream: boolean,
  ) {
    const hosts = subscriptions?.();
    const delivery = [
      'poll',
      ...(mayStream ? ['push'] : []),
      ...(hosts ? ['webhook'] : []),
    ];
    const serve = (
      action: string,
      params: typeof any,
      answer: (asked: Asked, context: ServerContext) => Promise<object>,
    ) =>
      server.setRequestHandler(
        `events/${action}`,
        params,
        (...asked) => answer(...asked).catch(refuse) as never,
      );
    serve('list', any, async () => {
      const listed = [...sources.values()].filter(({ tool }) =>
        isListed(tool.operation, request),
      );
      const events = listed.map((one) => ({ ...one.definition, delivery }));
      return { events };
    });
    serve('poll', named, async (asked) => {
      const limit = Math.min(asked.maxEvents ?? most, most);
      const { source, items, hasMore, cursor, isCut } = await read(
        asked,
        limit,
      );
      const young = items.filter((item) => !isTooOld(source, item, asked));
      const events = young.flatMap((item) => occurrencesOf(source, item));
      const truncated = isCut || young.length < items.length;
      return { events, truncated, hasMore, nextPollMs, cursor };
    });
    if (mayStream) serve('stream', named, stream);
    for (const action of ['subscribe', 'unsubscribe'] as const)
      serve(action, addressed, async (asked) => {
        sourceFor(asked);
        if (!hosts)
          throw new ProtocolError(-32014, 'Events are sent to no endpoint.', {
            feature: 'deliveryMode',
            value: 'webhook',
          });
        const startAt: StartAt = (cursor) => start({ ...asked, cursor });
        return hosts[action](asked, request, startAt);
      });

    /** A refusal in codes of MCP. */
    function refuse(error: Error & { status?: number }): never {
      const { status = 500 } = error;
      if (error instanceof Refused) throw failure(status, error.message);
      if (status < 500) throw failure(status, describe(error));
      throw hidden(error, request, 'event');
    }

    function sourceFor({ name, arguments: args = {} }: Asked) {
      const source = sources.get(name);
      if (!source)
        throw new ProtocolError(-32011, 'There is no event with this name.', {
          kind: 'event',
        });
      const { filters } = source;
      if (Object.keys(args).every((one) => Object.hasOwn(filters, one)))
        return source;
      const known = Object.keys(filters).join(', ') || 'none';
      throw new ProtocolError(
        -32602,
        `An argument is unknown; known: ${known}`,
      );
    }

    /** Where a subscription begins: now, if what follows is too old. */
    async function start(asked: Asked): ReturnType<StartAt> {
      const { source, begin, items, cursor, isCut } = await read(asked, 1);
      const [next] = items;
      if (!next) return { cursor, truncated: isCut };
      if (!isTooOld(source, next, asked))
        return { cursor: begin, truncated: isCut };
      const now = await start({ ...asked, cursor: null });
      return { ...now, truncated: true };
    }

    /** Items after the cursor, or from now on. */
    async function read(asked: Asked, limit: number) {
      const source = sourceFor(asked);
      const { type } = source;
      // Zero for a list that keeps all, and tells neither.
      const { before = 0n, last = 0n } = (await type.kept?.(request)) ?? {};
      const list = async (page: object) => {
        const args = { ...asked.arguments, ...page, ...type.given };
        return (await source.tool.ask(args, request)) ?? {};
      };
      const newest = async () =>
        last || (await list({ sort: 'id_desc', limit: '1' })).items?.[0]?.id;
      const after = `${asked.cursor ?? (await newest()) ?? 0}`;
      const { items = [], next } = await list({ after, limit: `${limit}` });
      const hasMore = next !== undefined;
      const reached = BigInt(items.at(-1)?.id ?? after);
      // At its end a list is read up to `last`: so the cursor of a quiet one
      // moves before it expires.
      const cursor = `${hasMore || reached > last ? reached : last}`;
      const isCut = BigInt(after) < before;
      const begin = isCut ? `${before}` : after;
      return { source, begin, items, hasMore, cursor, isCut };
    }

    /** Ends with the connection, or with the rights of its key. */
    async function stream(
      asked: Asked,
      { mcpReq: { id: subscription, notify, signal } }: ServerContext,
    ) {
      const source = sourceFor(asked);
      const { truncated, ...begin } = await start(asked);
      let { cursor } = begin;
      const { type, tool } = source;
      const args = { ...asked.arguments, after: cursor, ...type.given };
      const events = await tool.follow(args, request, signal);
      const _meta = { [SUBSCRIPTION_ID_META_KEY]: subscription };
      const tell = async (name: string, params: object) => {
        const method = `notifications/events/${name}`;
        await notify({ method, params: { ...params, _meta } });
      };
      try {
        for await (const { id, item, error: message } of events) {
          if (message) {
            await tell('terminated', { error: { code: -32012, message } });
            break;
          }
          cursor = id ?? cursor;
          if (!item)
            await tell(id ? 'active' : 'heartbeat', { cursor, truncated });
          else
            for (const one of occurrencesOf(source, item))
              await tell('event', { ...one, cursor });
        }
      } catch (error) {
        // The client continues at the cursor after a cut.
        request.log.debug({ err: error }, 'a stream of events is cut');
      }
      return {};
    }
  }
}

/** @returns none for an item that is another event */
function occurrencesOf({ type }: Source, data: Item) {
  const { name, list, isOf = () => true } = type;
  if (!isOf(data)) return [];
  const timestamp = timeOf(type, data);
  return [{ eventId: `${list.name}_${data.id}`, name, timestamp, data }];
}

const timeOf = ({ time }: EventType, item: Item) =>
  `${item[time] ?? new Date().toISOString()}`;

function isTooOld({ type }: Source, item: Item, { maxAgeMs }: Asked) {
  const age = Date.now() - Date.parse(timeOf(type, item));
  return maxAgeMs !== undefined && age > maxAgeMs;
}

function failure(status: number, message: string) {
  const codes: Record<number, number> = {
    400: -32602,
    401: -32012,
    403: -32012,
    429: -32013,
  };
  return new ProtocolError(codes[status] ?? -32603, message);
}

/** The SDK would show an assistant the message of a fault. */
export function hidden(err: Error, { log }: FastifyRequest, what: string) {
  if (err instanceof ProtocolError) return err;
  log.error({ err }, `a call of a ${what} has failed`);
  return new ProtocolError(-32603, `The ${what} has failed.`);
}
