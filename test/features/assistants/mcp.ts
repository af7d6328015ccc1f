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
