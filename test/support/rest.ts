import { committed } from './contract.ts';
import {
  fromJson,
  type HttpRequest,
  type HttpResponse,
  send,
  toJson,
} from './http.ts';
import type { Store } from './store.ts';

export interface RestRequest extends Omit<HttpRequest, 'path'> {
  /** A value to send as JSON, `bigint`s exact. */
  json?: unknown;
  /** undefined: the store's key; null: no key. */
  key?: string | null;
}

export interface RestResponse extends HttpResponse {
  /** The parsed body, integers exact. */
  json: any;
}

/** Calls the REST API, and validates every response against the contract. */
export async function rest(
  store: Pick<Store, 'origin' | 'key' | 'contract'>,
  path: string,
  request: RestRequest = {},
): Promise<RestResponse> {
  const {
    json,
    key = store.key,
    headers = {},
    body = json === undefined ? undefined : toJson(json),
    ...rest
  } = request;
  const sent = {
    ...rest,
    path,
    body,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  };
  const response = await send(store.origin, sent);
  (store.contract ?? committed).assert(sent, response);
  return {
    ...response,
    json: response.text === '' ? undefined : fromJson(response.text),
  };
}
