import {
  type DocumentNode,
  executeSync,
  type GraphQLError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import type { CompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import { type Estimate, estimateOf } from '../../../packages/graphql-limits/src/cost.ts';
import { rootFieldsOf } from '../../../packages/graphql-limits/src/limits.ts';
import { deprecatedFieldsIn } from '../../access/deprecations/deprecation.ts';
import { mostItems } from '../../storage/input/page.ts';
import { type Apollo, capacity } from './apollo.ts';
import type { GraphQLOptions } from './graphql.ts';
import type { GraphQLContext, RequestParameters } from './request.ts';

/** An operation of a valid document, with everything derived from it once. */
export interface Operation {
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  readonly type: `${OperationDefinitionNode['operation']}`;
  readonly name: string | undefined;
  /** Whether its document may have conditions. */
  readonly hasDirectives: boolean;
  /** Names of its root fields in the schema, by response key. */
  readonly fields: ReadonlyMap<string, string>;
  /** The distinct names of its root fields in the schema. */
  readonly fieldNames: readonly string[];
  /** The removal dates of the deprecated fields in its document, by their coordinates. */
  readonly deprecated: ReadonlyMap<string, Date>;
  /** @throws GraphQLError QUERY_TOO_COSTLY */
  estimate(variables: Record<string, unknown>): Estimate;
  /** The number of executions, and the compiled function. */
  uses: number;
  compiled?: CompiledQuery['query'];
}

/** The reason why there is no operation to execute. */
export interface Refusal {
  errors: readonly GraphQLError[];
  /** The stage at which the request failed. */
  failedAt: 'request' | 'document' | 'operation';
  /** The status and headers from Apollo Server; 500 when the errors define none. */
  status?: number | undefined;
  headers?: Iterable<[string, string]>;
}

/**
 * Finds the operations of requests. Apollo Server resolves persisted queries, parses and validates. An accepted text is
 * cached here, because hashing it and running Apollo's hooks cost as much as a small operation.
 */
export class Documents {
  readonly #apollo: Apollo;
  readonly #options: Pick<GraphQLOptions, 'schema' | 'limits'>;
  readonly #known = new LRUCache<string, DocumentNode>({ ...capacity, sizeCalculation: (_, text) => 1 + text.length });
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(apollo: Apollo, options: Pick<GraphQLOptions, 'schema' | 'limits'>) {
    this.#apollo = apollo;
    this.#options = options;
  }

  async find(parameters: RequestParameters, context: GraphQLContext): Promise<Operation | Refusal> {
    const { query, operationName, extensions } = parameters;
    const text = extensions?.persistedQuery === undefined ? query : undefined;
    const document = (text && this.#known.get(text)) || (await this.#admit(parameters, context));
    if ('errors' in document) return document;
    try {
      return this.operation(document, operationName);
    } catch (error) {
      return { errors: [error as GraphQLError], failedAt: 'operation' };
    }
  }

  async #admit(parameters: RequestParameters, context: GraphQLContext): Promise<DocumentNode | Refusal> {
    const { source, document, errors, failedAt, response } = await this.#apollo.pass(parameters, context);
    const { status, headers } = response.http;
    if (errors || !source || !document) return { errors: errors ?? [], failedAt, status, headers };
    const known = this.#known.get(source) ?? document;
    this.#known.set(source, known);
    return known;
  }

  /** @throws GraphQLError when the document has no such operation */
  operation(document: DocumentNode, operationName: string | undefined): Operation {
    const node = getOperationAST(document, operationName);
    if (!node) throw executeSync({ schema: this.#options.schema, document, operationName }).errors?.[0];
    const operation = this.#operations.get(node) ?? this.#prepare(document, node);
    this.#operations.set(node, operation);
    return operation;
  }

  #prepare(document: DocumentNode, node: OperationDefinitionNode): Operation {
    const { schema, limits } = this.#options;
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

/** True when no other part of the operation can have run before its field. */
export function isSingleField({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}
