import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyRequest,
  FastifySchema,
} from 'fastify';
import {
  isJsonObject,
  type OpenApi,
  type RestOperation,
  type Tool,
  toolsOf,
  type Wording,
} from './tools.ts';

/**
 * The revision in which each request declares its version, and those that begin
 * with `initialize`, newest first.
 */
const modern = '2026-07-28';
const legacy = ['2025-11-25', '2025-06-18', '2025-03-26'];
const versions = [modern, ...legacy];
const versionKey = 'io.modelcontextprotocol/protocolVersion';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';

/** The tools depend on the caller, and change only with a release. */
const cacheable = { ttlMs: 300_000, cacheScope: 'private' };

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
}

/** An origin or a host. */
const loopback =
  /^(?:https?:\/\/)?(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

interface Message {
  /** Absent in a notification. */
  id?: string | number;
  method: string;
  params?: Record<string, unknown>;
}

/** A JSON-RPC response without its id. */
type McpOutcome = { status?: number } & (
  | { result: object }
  | { error: { code: number; message: string; data?: object } }
);

const rpcError = (
  code: number,
  message: string,
  status = 200,
  data?: object,
): McpOutcome => ({
  status,
  error: { code, message, ...(data && { data }) },
});

/**
 * Serves assistants at `/mcp` by the Model Context Protocol: streamable HTTP
 * with JSON answers, without sessions and streams. The revisions since
 * 2025-03-26 are answered side by side.
 */
export async function openApiMcp(
  app: FastifyInstance,
  options: OpenApiMcpOptions,
): Promise<void> {
  const { document, name, origins, config = {}, isListed, refuse } = options;
  let tools = new Map<string, Tool>();
  let serverInfo = {};
  let about = {};
  app.addHook('onReady', async () => {
    const openApi = document() as OpenApi;
    const { title, version, description } = openApi.info;
    tools = toolsOf(openApi, options);
    serverInfo = { name, title, version };
    about = {
      capabilities: { tools: {} },
      serverInfo,
      instructions: description,
    };
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
    async handler(request, reply) {
      const { body } = request;
      if (!isMessage(body)) {
        throw refuse(
          400,
          'The body must be one JSON-RPC 2.0 request or notification; no batch.',
        );
      }
      const version = request.headers['mcp-protocol-version'] || modern;
      if (body.id === undefined && versions.includes(`${version}`))
        return reply.code(202).send();
      const { status = 200, ...outcome } = await answer(body, request);
      return reply
        .code(status)
        .send({ jsonrpc: '2.0', id: body.id, ...outcome });
    },
  });

  async function answer(
    message: Message,
    request: FastifyRequest,
  ): Promise<McpOutcome> {
    const { method, params = {} } = message;
    const meta = isJsonObject(params._meta) ? params._meta : {};
    const asked = request.headers['mcp-protocol-version'] || legacy[0];
    const isModern = meta[versionKey] !== undefined || asked === modern;
    const mismatch = isModern && mismatchIn(message, meta, request);
    if (mismatch) return mismatch;
    if (!isModern && !legacy.includes(`${asked}`))
      return unsupported(asked, versions);
    const complete = (result: object) => {
      if (!isModern) return { result };
      const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
      return { result: { ...result, resultType: 'complete', _meta } };
    };
    if (method === 'tools/call') {
      const { name, arguments: args = {} } = params;
      const tool = tools.get(name as string);
      if (!tool) return rpcError(-32602, 'There is no tool with this name.');
      if (!isJsonObject(args))
        return rpcError(-32602, 'The arguments must be an object.');
      return complete(await tool.call(args, request));
    }
    if (method === 'tools/list') {
      const listed = [...tools.values()].filter(({ operation }) =>
        isListed(operation, request),
      );
      return complete({
        tools: listed.map(({ definition }) => definition),
        ...(isModern && cacheable),
      });
    }
    if (isModern && method === 'server/discover')
      return complete({ supportedVersions: [modern], ...about, ...cacheable });
    if (!isModern && method === 'ping') return complete({});
    if (!isModern && method === 'initialize') {
      const protocolVersion =
        legacy.find((one) => one === params.protocolVersion) ?? legacy[0];
      return complete({ protocolVersion, ...about });
    }
    return rpcError(-32601, 'There is no such method.', isModern ? 404 : 200);
  }
}

function isMessage(body: unknown): body is Message {
  if (
    !isJsonObject(body) ||
    body.jsonrpc !== '2.0' ||
    typeof body.method !== 'string'
  )
    return false;
  const { id, params } = body;
  const isId =
    id === undefined || typeof id === 'string' || Number.isSafeInteger(id);
  return isId && (params === undefined || isJsonObject(params));
}

/**
 * Refuses a version that is not served, and headers that a proxy may have read
 * differently from the body.
 */
function mismatchIn(
  { method, params }: Message,
  {
    [versionKey]: version,
    [capabilitiesKey]: capabilities,
  }: Record<string, unknown>,
  { headers }: FastifyRequest,
): McpOutcome | undefined {
  if (typeof version !== 'string')
    return rpcError(-32602, `_meta must have ${versionKey}.`, 400);
  const tool = `${params?.name}`;
  // A name may be in Base64 (Streamable HTTP, "Value Encoding").
  const names = {
    'mcp-name': [tool, `=?base64?${Buffer.from(tool).toString('base64')}?=`],
  };
  const mirrored = {
    'mcp-protocol-version': [version],
    'mcp-method': [method],
    ...(method === 'tools/call' && names),
  };
  const wrong = Object.entries(mirrored).find(
    ([name, values]) => !values.includes(`${headers[name]}`),
  );
  if (wrong)
    return rpcError(
      -32020,
      `The header ${wrong[0]} does not match the body.`,
      400,
    );
  if (version !== modern) return unsupported(version, [modern]);
  if (isJsonObject(capabilities)) return undefined;
  return rpcError(-32602, `_meta must have ${capabilitiesKey}.`, 400);
}

function unsupported(requested: unknown, supported: string[]): McpOutcome {
  return rpcError(-32022, 'Unsupported protocol version', 400, {
    supported,
    requested,
  });
}
