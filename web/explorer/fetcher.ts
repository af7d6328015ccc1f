import type { Fetcher, FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, getOperationAST, parse } from 'graphql';
import { parseExactly, parseVariables } from './exact-json.ts';
import { subscriber } from './subscriber.ts';

interface FetcherOptions {
  /** The API key, or an empty string. */
  key: string;
  /** The variables as they were typed. */
  variablesText(): string;
  /** Receives the result of the schema request as a message. */
  onSchema(message: string): void;
}

// Relative to the page, because a proxy may serve it below a prefix.
const url = new URL('graphql', document.baseURI).href;

/** Creates GraphiQL's fetcher. It sends and reads all numbers exactly. */
export function createFetcher({
  key,
  variablesText,
  onSchema,
}: FetcherOptions): Fetcher {
  const headers: Record<string, string> = key
    ? { authorization: `Bearer ${key}` }
    : {};
  const subscribe = subscriber(url, headers);

  return async (params) => {
    if (params.operationName === 'IntrospectionQuery')
      return introspect(() => post(params, headers), onSchema);
    const operation = operationOf(params);
    const variables = params.variables && parseVariables(variablesText());
    const request = {
      query: params.query,
      operationName: operation?.name?.value,
      variables,
    };
    return operation?.operation === 'subscription'
      ? subscribe(request)
      : post(request, headers);
  };
}

/**
 * Prefers the document's only operation, because shortly after a change
 * GraphiQL still passes the previous name.
 */
function operationOf({ query, operationName }: FetcherParams) {
  try {
    const document = parse(query);
    return (
      getOperationAST(document) ?? getOperationAST(document, operationName)
    );
  } catch {
    // The service reports the syntax error.
    return undefined;
  }
}

/**
 * @throws Error with the service's message. If it were a result, GraphiQL would
 *   send the request again.
 */
async function introspect(
  send: () => Promise<ExecutionResult>,
  onSchema: (message: string) => void,
) {
  const failed = (message: string) => {
    onSchema(message);
    throw new Error(message);
  };
  const result = await send().catch(({ message }: Error) => failed(message));
  if (!result.data)
    return failed(
      result.errors?.[0]?.message ?? 'The response contains no schema.',
    );
  onSchema('The schema is loaded.');
  return result;
}

/**
 * @throws Error if the service cannot be reached, or the response is not JSON
 */
async function post(
  params: FetcherParams,
  headers: Record<string, string>,
): Promise<ExecutionResult> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(params),
  }).catch(() => {
    throw new Error('The service cannot be reached.');
  });
  const text = await response.text();
  try {
    return parseExactly(text) as ExecutionResult;
  } catch {
    throw new Error(
      `The response with the status ${response.status} is not JSON. It may come from a proxy.`,
    );
  }
}
