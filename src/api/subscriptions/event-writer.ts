import { type DocumentNode, execute, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import type { Int64 } from '../../storage/input/int64.ts';
import { writtenOnce } from '../../storage/input/page.ts';
import { formatted, logErrors } from '../graphql/errors.ts';
import { isSuitable } from '../graphql/executor.ts';
import type { GraphQLContext } from '../graphql/request.ts';
import { type Write } from '../graphql/write.ts';
import { Writers } from '../graphql/writer.ts';
import { frames } from './event-stream.ts';

type Item = { readonly id: Int64 };
type WritePage = (items: readonly unknown[]) => string;

/** A subscription, as it was sent. */
export interface LiveOperation {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  variables: Record<string, unknown> | undefined;
  context: GraphQLContext;
}

/**
 * Writes items as the events of a subscription. Where they are plain objects the text is concatenated (`write.ts`), once
 * for all who are sent the same items by the same operation; else graphql-js runs the operation for each item.
 */
export class EventWriter {
  readonly #schema: GraphQLSchema;
  readonly #writers: Writers | undefined;
  readonly #known = new WeakMap<OperationDefinitionNode, WritePage | undefined>();

  /** @param jit whether operations are compiled */
  constructor(schema: GraphQLSchema, jit: boolean) {
    this.#schema = schema;
    this.#writers = jit ? new Writers(schema) : undefined;
  }

  of(live: LiveOperation): (items: readonly unknown[]) => string | Promise<string> {
    const quick = this.#compiled(live);
    if (!quick) return (items) => this.#interpret(live, items);
    return (items) => {
      try {
        return writtenOnce(items, quick, undefined, quick);
      } catch {
        // A value that is not of its type, which no table has: graphql-js has the words for it.
        return this.#interpret(live, items);
      }
    };
  }

  #compiled({ document, operation }: LiveOperation): WritePage | undefined {
    if (!this.#known.has(operation)) this.#known.set(operation, this.#compile(document, operation));
    return this.#known.get(operation);
  }

  #compile(document: DocumentNode, operation: OperationDefinitionNode): WritePage | undefined {
    const cut = isSuitable(document, operation) ? this.#writers?.of(document, operation) : undefined;
    if (!cut) return undefined;
    // A subscription has one root field.
    const [[key, { write }]] = [...cut.writes] as unknown as [[string, { write: Write }]];
    return (items) => {
      let text = '';
      for (const item of items) {
        text += frames.item((item as Item).id, `{"data":{${JSON.stringify(key)}:${write(item)}}}`);
      }
      return text;
    };
  }

  async #interpret({ document, operation, variables, context }: LiveOperation, items: readonly unknown[]) {
    const schema = this.#schema;
    const operationName = operation.name?.value;
    let text = '';
    for (const item of items) {
      const run = {
        schema,
        document,
        operationName,
        variableValues: variables,
        contextValue: context,
        rootValue: item,
      };
      const { data, errors } = await execute(run);
      if (errors) logErrors(errors, context.request);
      const result = errors ? { errors: errors.map(formatted), data } : { data };
      text += frames.item((item as Item).id, JSON.stringify(result));
    }
    return text;
  }
}
