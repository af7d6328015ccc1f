import {
  createSourceEventStream,
  execute,
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

/** Executes with graphql-js. */
export function interpreter(options: ExecutionOptions): Executor {
  const { schema, introspection } = options;
  return (operation) => {
    const { document, name: operationName, type } = operation;
    if (type === 'subscription')
      return (variables, context) =>
        subscribe(operation, variables, context, options);
    return (variableValues, contextValue) =>
      execute({
        schema,
        document,
        operationName,
        contextValue,
        variableValues,
        options: executionOptions,
        hideSuggestions: !introspection,
      });
  };
}

/**
 * Opens a subscription, whose results are those of the operation for each item.
 * @throws StoreError
 */
async function subscribe(
  operation: Operation,
  variableValues: Record<string, unknown>,
  context: GraphQLContext,
  { schema, observers }: ExecutionOptions,
): Promise<Executed> {
  const { request, reply, call, accepted } = context;
  const format = accepted.stream ?? serverSentEvents;
  const { document, name: operationName, node, hasDirectives } = operation;
  const { isNested, surcharge } = operation.estimate(variableValues);
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
