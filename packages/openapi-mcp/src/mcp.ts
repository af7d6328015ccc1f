import { Readable } from 'node:stream';
import { isRecord } from '@animal-store/exact-json';
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyRequest,
  FastifySchema,
} from 'fastify';
import {
  type EventType,
  eventCapabilities,
  eventsOf,
  hidden,
  type Subscriptions,
} from './events.ts';
import {
  type OpenApi,
  Refused,
  type RestOperation,
  type Tool,
  toolsOf,
  type Wording,
} from './tools.ts';

export { ProtocolError } from '@modelcontextprotocol/server';
export type { Asked, StartAt } from './events.ts';
export { toolNameOf, withIdsAsText } from './tools.ts';
export type { EventType, OpenApi, Subscriptions };

/** The tools depend on the caller, and change only with a release. */
const cacheable = { ttlMs: 300_000, cacheScope: 'private' } as const;

export interface OpenApiMcpOptions extends Wording {
  /**
   * The OpenAPI document, read when the server is ready. Its `info` is that of
   * the MCP server.
   */
  document(): object;
  /** The server's name for programs. */
  name: string;
  /** The origins of pages that may call. */
  origins: readonly string[];
  /** For the hooks of the route. */
  config?: FastifyContextConfig;
  /**
   * Whether `tools/list` shows an operation to this caller. A call is checked
   * by the operation itself.
   */
  isListed(operation: RestOperation, request: FastifyRequest): boolean;
  /** Called when a stream of events begins. */
  onStream?(request: FastifyRequest): void;
  /** What assistants may poll (SEP-3415), read after `document`. */
  events?(document: OpenApi): readonly EventType[];
  /** What subscribes endpoints. */
  subscriptions?(): Subscriptions | undefined;
}

/** An origin or a host. */
const loopback =
  /^(?:https?:\/\/)?(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Serves assistants at `/mcp` by the Model Context Protocol: streamable HTTP
 * with JSON answers, without sessions. The official SDK speaks the protocol.
 */
export async function openApiMcp(
  app: FastifyInstance,
  options: OpenApiMcpOptions,
): Promise<void> {
  const { document, name, origins, config = {}, isListed, refuse } = options;
  let tools = new Map<string, Tool>();
  let serveEvents: ReturnType<typeof eventsOf>;
  let about: OpenApi['info'];
  app.addHook('onReady', async () => {
    const openApi = document() as OpenApi;
    about = openApi.info;
    tools = toolsOf(openApi, options);
    const types = options.events?.(openApi) ?? [];
    serveEvents = eventsOf(types, tools, options);
  });
  app.route({
    method: 'POST',
    url: '/mcp',
    schema: { hide: true } as FastifySchema,
    config,
    async onRequest({ headers: { origin, host = '' } }) {
      // Required against DNS rebinding, by which a page's origin would equal
      // the host (Streamable HTTP, section 1). The host would then be the
      // page's own name, not that of this machine.
      const isOwn = loopback.test(host) && loopback.test(`${origin}`);
      if (origin !== undefined && !isOwn && !origins.includes(origin))
        throw refuse(403, 'This Origin is not allowed.');
    },
    // A client may leave before a stream begins.
    errorHandler(error, _request, { raw }) {
      if (!raw.destroyed) throw error;
    },
    async handler(request, reply) {
      const { body } = request;
      if (!isMessage(body)) {
        throw refuse(
          400,
          'The body must be one JSON-RPC 2.0 request or notification, of at most 1000 arguments; no batch.',
        );
      }
      const answer = await answered(request, body);
      const headers = Object.fromEntries(answer.headers);
      const isStream = /event-stream/.test(`${headers['content-type']}`);
      if (isStream) options.onStream?.(request);
      const sent = isStream
        ? Readable.fromWeb(answer.body as never)
        : (await answer.text()) || undefined;
      return reply.code(answer.status).headers(headers).send(sent);
    },
  });

  async function answered(
    request: FastifyRequest,
    parsedBody: object,
  ): Promise<Response> {
    const given = new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        ...(request.headers as Record<string, string>),
        // The SDK demands that a client accepts streams, too.
        accept: 'application/json, text/event-stream',
      },
    });
    if (await isLegacyRequest(given, parsedBody)) {
      const transport = new WebStandardStreamableHTTPServerTransport({
        enableJsonResponse: true,
      });
      await serverFor(request, false).connect(transport);
      return transport.handleRequest(given, { parsedBody });
    }
    const modern = createMcpHandler(() => serverFor(request, true), {
      legacy: 'reject',
      maxSubscriptions: 0,
    });
    return modern.fetch(given, { parsedBody });
  }

  /** For one request, because the tools depend on its caller. */
  function serverFor(request: FastifyRequest, mayStream: boolean) {
    const { title, version, description } = about;
    const offered = serveEvents ? eventCapabilities : {};
    const server = new Server(
      { name, title, version },
      {
        capabilities: { tools: {}, ...offered },
        instructions: description ?? '',
        cacheHints: { 'tools/list': cacheable, 'server/discover': cacheable },
      },
    );
    server.setRequestHandler('tools/list', () => {
      const listed = [...tools.values()].filter(({ operation }) =>
        isListed(operation, request),
      );
      return { tools: listed.map(({ definition }) => definition as never) };
    });
    server.setRequestHandler('tools/call', async ({ params }) => {
      const tool = tools.get(params.name);
      if (!tool)
        throw new ProtocolError(-32602, 'There is no tool with this name.');
      const result = tool.call(params.arguments ?? {}, request);
      return result.catch((error) => {
        if (!(error instanceof Refused)) throw hidden(error, request, 'tool');
        const content = [{ type: 'text', text: error.message }];
        return { content, isError: true };
      }) as never;
    });
    serveEvents?.(server, request, mayStream);
    return server;
  }
}

/** Whether it is one request or notification, whose id `JSON.parse` kept. */
function isMessage(body: unknown): body is object {
  if (!isRecord(body) || typeof body.method !== 'string') return false;
  const { id = '', params = {} } = body;
  const isId = typeof id === 'string' || Number.isSafeInteger(id);
  if (!isId || !isRecord(params)) return false;
  return [body, params, ...Object.values(params)].every(isShort);
}

/** The SDK reads each name for a microsecond, and more than once. */
const isShort = (part: unknown) =>
  !isRecord(part) || Object.keys(part).length <= 1000;
