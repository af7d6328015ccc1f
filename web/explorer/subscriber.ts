import type { FetcherParams } from '@graphiql/toolkit';
import type { ExecutionResult } from 'graphql';
import { createClient, NetworkError } from 'graphql-sse';

type Data = Record<string, unknown>;

/**
 * Subscriptions as server-sent events: graphql-sse's distinct connections mode.
 */
export function subscriber(url: string, headers: Record<string, string>) {
  const client = createClient({ url, headers, retryAttempts: 0 });

  return ({
    query,
    operationName,
    variables,
  }: FetcherParams): AsyncIterable<ExecutionResult> => {
    const results = client.iterate<Data, Data>({
      query,
      operationName: operationName ?? undefined,
      variables,
    });
    // Not a generator: its `return` would wait for the next result, so a
    // subscription could not be stopped.
    const iterator: AsyncIterator<ExecutionResult> = {
      next: () => results.next().catch(refusalIn),
      return: async () =>
        (await results.return?.()) ?? { done: true, value: undefined },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  };
}

/**
 * The service's response when it refused the stream. @throws any other error
 */
async function refusalIn(
  error: unknown,
): Promise<IteratorResult<ExecutionResult>> {
  if (!(error instanceof NetworkError) || !error.response) throw error;
  return {
    value: await (error.response as Response)
      .json()
      .catch(() => Promise.reject(error)),
  };
}
