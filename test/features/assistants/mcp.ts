import { send } from '../../support/http.ts';
import type { Store } from '../../support/store.ts';

export type Target = Pick<Store, 'origin' | 'key'>;

/** Sends a message to `/mcp`. */
export async function post(
  target: Target,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const response = await send(target.origin, {
    method: 'POST',
    path: '/mcp',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: {
      authorization: `Bearer ${target.key}`,
      'content-type': 'application/json',
      ...headers,
    },
  });
  return {
    ...response,
    json: response.text === '' ? undefined : JSON.parse(response.text),
  };
}

/** A request of the earlier revisions. */
export const rpc = (target: Target, method: string, params?: object) =>
  post(target, { jsonrpc: '2.0', id: 7, method, ...(params && { params }) });

/** @returns the result of a tool */
export const callTool = async (target: Target, name: string, args: object) =>
  (await rpc(target, 'tools/call', { name, arguments: args })).json.result;

const version = '2026-07-28';

/** For a stream of events, of the revision without a handshake. */
export function eventsRequest({ origin, key }: Target, params: object) {
  const method = 'events/stream';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const message = { jsonrpc: '2.0', id: 's', method };
  return {
    url: `${origin}/mcp`,
    method: 'POST',
    body: JSON.stringify({ ...message, params: { _meta, ...params } }),
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...('name' in params && { 'mcp-name': `${params.name}` }),
    },
  };
}

/**
 * Opens a stream of events.
 *
 * @returns reads the next message; undefined at the end
 */
export async function openEvents(
  target: Target,
  params: object,
  signal?: AbortSignal,
) {
  const { url, ...asked } = eventsRequest(target, params);
  const response = await fetch(url, { ...asked, ...(signal && { signal }) });
  const messages = messagesIn(response);
  return async () => (await messages.next()).value;
}

async function* messagesIn({ body }: Response): AsyncGenerator<any, void> {
  let rest = '';
  for await (const piece of (body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream() as never,
  ) as unknown as AsyncIterable<string>) {
    const lines = `${rest}${piece}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines)
      if (line.startsWith('data: {')) yield JSON.parse(line.slice(6));
  }
  if (rest) yield JSON.parse(rest);
}
