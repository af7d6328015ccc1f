import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import { fromJson, type HttpResponse, send, toJson } from './http.ts';
import type { Store } from './store.ts';

export interface GraphQLResult<Data> extends HttpResponse {
  data?: Data | null;
  errors?: Array<{
    message: string;
    path?: unknown[];
    extensions: { code: string; status: number; retryAfter?: number };
  }>;
}

/** Runs a generated, typed document against the GraphQL API. */
export function graphql<Data, Variables>(
  store: Pick<Store, 'origin' | 'key'>,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  key?: string | null,
): Promise<GraphQLResult<Data>> {
  return graphqlText<Data>(store, { query: print(document), variables }, key);
}

/** Sends any body: for requests that no typed document can express. */
export async function graphqlText<Data = any>(
  store: Pick<Store, 'origin' | 'key'>,
  body: unknown,
  key: string | null = store.key,
  headers: Record<string, string> = {},
): Promise<GraphQLResult<Data>> {
  const response = await send(store.origin, {
    method: 'POST',
    path: '/graphql',
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : toJson(body),
  });
  return { ...response, ...(fromJson(response.text) as object) };
}

/**
 * Sends a request three times, so that it is interpreted, compiled, and
 * executed from the cache.
 *
 * @returns the response
 * @throws Error when the responses differ
 */
export async function graphqlThrice<Data = any>(
  ...request: Parameters<typeof graphqlText>
): Promise<GraphQLResult<Data>> {
  const first = await graphqlText<Data>(...request);
  for (let time = 2; time <= 3; time += 1) {
    const { status, text } = await graphqlText(...request);
    if (status !== first.status || text !== first.text)
      throw new Error(`${first.text}, but then ${text}`);
  }
  return first;
}
