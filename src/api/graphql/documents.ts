import type { RequestParameters } from '@animal-store/graphql-http/over-http';
import { estimateOf } from '@animal-store/graphql-limits/cost';
import { rootFieldsOf } from '@animal-store/graphql-limits/limits';
import {
  type DocumentNode,
  executeSync,
  type GraphQLError,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { deprecatedFieldsIn } from '../../access/deprecations/deprecation.ts';
import { mostItems } from '../../validation/page.ts';
import { type Apollo, cacheLimits } from './apollo.ts';
import type { GraphQLContext, GraphQLOptions, Operation, Result } from './operation.ts';

/**
 * Finds the operations of requests. An accepted text is cached here, because hashing it and running Apollo's hooks cost
 * as much as a small operation.
 */
export class Documents {
  readonly #accepted = new LRUCache<string, DocumentNode>({
    ...cacheLimits,
    sizeCalculation: (_, text) => 1 + text.length,
  });
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(
    private readonly apollo: Apollo,
    private readonly options: Pick<GraphQLOptions, 'schema' | 'limits'>,
  ) {}

  /** @returns the operation, or the errors because of which there is none */
  async find(parameters: RequestParameters, context: GraphQLContext): Promise<Operation | Result> {
    const { query, operationName, extensions } = parameters;
    const text = extensions?.persistedQuery === undefined ? query : undefined;
    const document = (text && this.#accepted.get(text)) || (await this.#accept(parameters, context));
    if (!('definitions' in document)) return document;
    try {
      return this.operation(document, operationName);
    } catch (error) {
      return { errors: [error as GraphQLError], failedAt: 'operation' };
    }
  }

  async #accept(parameters: RequestParameters, context: GraphQLContext): Promise<DocumentNode | Result> {
    const { source, document, errors, failedAt, response } = await this.apollo.run(parameters, context);
    const { status, headers } = response.http;
    if (errors || !source || !document) return { errors: errors ?? [], failedAt, status, headers };
    const accepted = this.#accepted.get(source) ?? document;
    this.#accepted.set(source, accepted);
    return accepted;
  }

  /** @throws GraphQLError when the document has no such operation */
  operation(document: DocumentNode, operationName: string | undefined): Operation {
    const node = getOperationAST(document, operationName);
    if (!node) throw executeSync({ schema: this.options.schema, document, operationName }).errors?.[0];
    const operation = this.#operations.get(node) ?? this.#prepare(document, node);
    this.#operations.set(node, operation);
    return operation;
  }

  #prepare(document: DocumentNode, node: OperationDefinitionNode): Operation {
    const { schema, limits } = this.options;
    const fields = new Map(rootFieldsOf(document, node).map(({ alias, name }) => [(alias ?? name).value, name.value]));
    return {
      document,
      node,
      type: node.operation,
      name: node.name?.value,
      hasDirectives: document.loc?.source.body.includes('@') ?? true,
      fields,
      fieldNames: [...new Set(fields.values())],
      deprecated: deprecatedFieldsIn(schema, document),
      estimate: estimateOf(schema, document, node, { maxCost: limits.maxCost, mostItems }),
      uses: 0,
    };
  }
}
