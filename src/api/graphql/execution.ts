import type { Estimate } from '@animal-store/graphql-limits/cost';
import {
  createSourceEventStream,
  type ExecutionResult,
  execute,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { StoreError } from '../../errors.ts';
import type { ListEvent } from '../../records/live-list.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import { serverSentEvents } from '../subscriptions/format.ts';
import {
  formatError,
  graphQLErrorOf,
  logErrors,
  type Outcome,
  outcomeOf,
} from './answer.ts';
import type { Execute, GraphQLContext } from './context.ts';
import { executionOptions, type Operation } from './document.ts';

/** Executes queries and mutations with graphql-js. */
export function interpreter(
  schema: GraphQLSchema,
  hideSuggestions: boolean,
): (operation: Operation) => Execute {
  return ({ document, name: operationName }) =>
    (variableValues, contextValue) =>
      execute({
        schema,
        document,
        operationName,
        contextValue,
        variableValues,
        options: executionOptions,
        hideSuggestions,
      });
}

/**
 * Opens a subscription, whose results are those of the operation for each item.
 * @throws StoreError
 */
export async function subscribe(
  operation: Operation,
  variableValues: Record<string, unknown>,
  context: GraphQLContext,
  { isNested, surcharge }: Estimate,
  {
    schema,
    observers,
  }: { schema: GraphQLSchema; observers: readonly OperationObserver[] },
): Promise<Pick<Outcome, 'stream'> & Pick<ExecutionResult, 'errors'>> {
  const { request, reply, call, accepted } = context;
  const format = accepted.stream ?? serverSentEvents;
  const { document, name: operationName, node, hasDirectives } = operation;
  const executed = {
    schema,
    document,
    operationName,
    variableValues,
    contextValue: context,
  };
  const source = await createSourceEventStream({
    ...executed,
    options: executionOptions,
  });
  if (!(Symbol.asyncIterator in source)) {
    const { errors = [] } = source;
    // When a retry may succeed later, clients of event streams need a status,
    // not an event.
    const failures = errors.map(({ originalError }) => originalError);
    const temporary = failures.find(
      (one) =>
        one instanceof StoreError && one.headers['retry-after'] !== undefined,
    );
    if (temporary) throw temporary;
    return { errors };
  }

  async function framesOf(items: ListEvent['items']): Promise<Buffer> {
    let frames = '';
    for (const item of items) {
      const result = await execute({ ...executed, rootValue: item });
      const { data, errors, failures } = outcomeOf(result);
      logErrors(failures, request);
      frames += format.next(JSON.stringify({ errors, data }), item.id);
    }
    return Buffer.from(frames);
  }

  // Without resolvers and conditions, results do not depend on the caller or on
  // variables, so subscribers share the frames. Their key: the operation for
  // events, its node for multipart.
  const key = format === serverSentEvents ? operation : node;
  let errors: GraphQLFormattedError[] | undefined;
  const stream = await request.server.subscriptions.open(request, reply, {
    format,
    batches: source as AsyncGenerator<ListEvent, void>,
    units: 1 + surcharge,
    readsMore: isNested,
    shareKey: isNested || hasDirectives ? undefined : key,
    framesOf,
    failureAsJson(failure) {
      errors = [formatError(graphQLErrorOf(failure))];
      return JSON.stringify(errors);
    },
  });
  reply.raw.once('close', () => {
    for (const observer of observers) observer.ended(operation, call, errors);
  });
  return { stream };
}
