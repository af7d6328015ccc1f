import type { Values } from '@animal-store/graphql-limits/cost';
import {
  createSourceEventStream,
  type ExecutionArgs,
  execute,
  type GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { StoreError } from '../../errors.ts';
import type { ListEvent } from '../../records/live-list.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import { serverSentEvents } from '../subscriptions/format.ts';
import { formatError, graphQLErrorOf, logErrors, outcomeOf } from './answer.ts';
import type { Executed, GraphQLContext } from './context.ts';
import { type Executor, executionOptions, type Operation } from './document.ts';

interface ExecutionOptions {
  schema: GraphQLSchema;
  introspection: boolean;
  observers: readonly OperationObserver[];
}

/** An execution of graphql-js. */
interface Execution extends ExecutionArgs {
  variableValues: Values;
  contextValue: GraphQLContext;
}

/** Executes with graphql-js. */
export function interpreter({
  schema,
  introspection,
  observers,
}: ExecutionOptions): Executor {
  return (operation) => {
    const { document, name: operationName, type } = operation;
    const prepared = {
      schema,
      document,
      operationName,
      options: executionOptions,
      hideSuggestions: !introspection,
    };
    const run = (execution: Execution) =>
      type === 'subscription'
        ? subscribe(operation, execution, observers)
        : execute(execution);
    return (variableValues, contextValue) =>
      run({ ...prepared, variableValues, contextValue });
  };
}

/**
 * Opens a subscription, whose results are those of the operation for each item.
 * @throws StoreError
 */
async function subscribe(
  operation: Operation,
  execution: Execution,
  observers: readonly OperationObserver[],
): Promise<Executed> {
  const { request, reply, call, accepted } = execution.contextValue;
  const format = accepted.stream ?? serverSentEvents;
  const { node, hasDirectives } = operation;
  const { isNested, surcharge } = operation.estimate(execution.variableValues);
  const source = await createSourceEventStream(execution);
  if (!(Symbol.asyncIterator in source)) {
    const { errors = [] } = source;
    // When a retry may succeed later, clients of event streams need a status,
    // not an event.
    const temporary = errors.find(isTemporary);
    if (temporary) throw temporary.originalError;
    return { errors };
  }

  // An event that fails for good keeps its id: it would fail again.
  async function framesOf(items: ListEvent['items']) {
    let frames = '';
    for (const rootValue of items) {
      const event = call.continued();
      const contextValue = { ...execution.contextValue, call: event };
      const result = await execute({ ...execution, rootValue, contextValue });
      const { data, errors, failures } = outcomeOf(result);
      logErrors(failures, request);
      if (failures?.some(isTemporary)) return undefined;
      // Items read by fields below the root.
      if (event.items > 0) await call.meter?.charge(event.items);
      call.items += event.items;
      frames += format.next(JSON.stringify({ errors, data }), rootValue.id);
    }
    return Buffer.from(frames);
  }

  // Without resolvers and conditions, results do not depend on the caller or on
  // variables, so subscribers share the frames.
  const isShared = !isNested && !hasDirectives;
  // One for each format.
  const key = format === serverSentEvents ? operation : node;
  let errors: GraphQLFormattedError[] | undefined;
  const stream = await request.server.subscriptions.open(request, reply, {
    format,
    batches: source as AsyncGenerator<ListEvent, void>,
    units: 1 + surcharge,
    readsMore: isNested,
    ...(isShared && { shareKey: key }),
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

function isTemporary({ originalError: failure }: GraphQLError) {
  return failure instanceof StoreError && 'retry-after' in failure.headers;
}
