import type { Fetcher, FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, getOperationAST, parse } from 'graphql';
import { parseExactly, parseVariables } from './exact-json.ts';
import { subscriber } from './subscriber.ts';

interface FetcherOptions {
  /** Empty without one. */
  key: string;
  /** The variables as they were typed. */
  variablesText(): string;
  /** Hears what came of the request for the schema. */
  onSchema(message: string): void;
}

// Relative to the page, wherever a proxy has put it.
const url = new URL('graphql', document.baseURI).href;

/** What GraphiQL sends its operations with: every number goes and comes to its last digit. */
export function createFetcher({ key, variablesText, onSchema }: FetcherOptions): Fetcher {
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  const subscribe = subscriber(url, headers);

  return async (params) => {
    if (params.operationName === 'IntrospectionQuery') return introspect(() => post(params, headers), onSchema);
    const operation = operationOf(params);
    const variables = params.variables && parseVariables(variablesText());
    const request = { query: params.query, operationName: operation?.name?.value, variables };
    return operation?.operation === 'subscription' ? subscribe(request) : post(request, headers);
  };
}

/** Of the document itself: for a moment after each change GraphiQL names the operation that was there before. */
function operationOf({ query, operationName }: FetcherParams) {
  try {
    const document = parse(query);
    return getOperationAST(document) ?? getOperationAST(document, operationName);
  } catch {
    // The service says what is wrong with it.
    return undefined;
  }
}

/** @throws Error what the service said against it; GraphiQL would ask once more otherwise */
async function introspect(ask: () => Promise<ExecutionResult>, onSchema: (message: string) => void) {
  const failed = (message: string) => {
    onSchema(message);
    throw new Error(message);
  };
  const result = await ask().catch(({ message }: Error) => failed(message));
  if (!result.data) return failed(result.errors?.[0]?.message ?? 'There is no schema in the answer.');
  onSchema('The schema is loaded.');
  return result;
}

/** @throws Error the service could not be reached, or something else answered */
async function post(params: FetcherParams, headers: Record<string, string>): Promise<ExecutionResult> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  }).catch(() => {
    throw new Error('The service cannot be reached.');
  });
  const text = await response.text();
  try {
    return parseExactly(text) as ExecutionResult;
  } catch {
    throw new Error(`Something between here and the service answered ${response.status}, and not in JSON.`);
  }
}
