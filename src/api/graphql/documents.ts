import { ApolloServer, type GraphQLRequestListener, HeaderMap } from '@apollo/server';
import * as disabledPlugins from '@apollo/server/plugin/disabled';
import {
  type DocumentNode,
  execute,
  type GraphQLError,
  getOperationAST,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
} from 'graphql';
import type { CompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import { deprecatedFieldsIn } from '../../access/deprecations/deprecation.ts';
import { type Estimate, estimateOf } from './cost.ts';
import type { GraphQLOptions } from './graphql.ts';
import { fieldsIn, fragmentsOf, operationLimits, unconditionalSubscriptions } from './limits.ts';
import type { RequestParameters } from './request.ts';

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

export type DocumentOptions = Pick<GraphQLOptions, 'schema' | 'introspection' | 'apq' | 'limits'>;

/** A valid document, and its operations that were requested. */
interface Known {
  document: DocumentNode;
  operations: Map<OperationDefinitionNode, Operation>;
}

/** Limits of a document cache: the number of documents, and the total length of their texts in characters. */
const capacity = { max: 500, maxSize: 1_000_000 };

/** The results of Apollo Server for a request. */
interface Seen {
  source?: string | undefined;
  document?: DocumentNode | undefined;
  errors?: readonly GraphQLError[] | undefined;
}

/**
 * Finds the operations of requests. Apollo Server resolves persisted queries, parses and validates. An accepted text is
 * cached here, because hashing it and running Apollo's hooks cost as much as a small operation.
 */
export class Documents {
  readonly #options: DocumentOptions;
  readonly #apollo: ApolloServer<{ seen: Seen }>;
  readonly #known = new LRUCache<string, Known>({ ...capacity, sizeCalculation: (_, text) => 1 + text.length });

  private constructor(options: DocumentOptions) {
    this.#options = options;
    this.#apollo = apolloServer(options);
  }

  static async open(options: DocumentOptions): Promise<Documents> {
    const documents = new Documents(options);
    await documents.#apollo.start();
    return documents;
  }

  close(): Promise<void> {
    return this.#apollo.stop();
  }

  async find(parameters: RequestParameters): Promise<Operation | Refusal> {
    const { query, operationName, extensions } = parameters;
    const text = extensions?.persistedQuery === undefined ? query : undefined;
    const known = (text && this.#known.get(text)) || (await this.#admit(parameters));
    if ('errors' in known) return known;
    const { document, operations } = known;
    const node = getOperationAST(document, operationName);
    if (!node) {
      const { errors = [] } = await execute({ schema: this.#options.schema, document, operationName });
      return { errors, failedAt: 'operation' };
    }
    const found = operations.get(node) ?? this.#prepare(document, node);
    operations.set(node, found);
    return found;
  }

  async #admit(parameters: RequestParameters): Promise<Known | Refusal> {
    const seen: Seen = {};
    const { http } = await this.#apollo.executeOperation(parameters, { contextValue: { seen } });
    const { source, document, errors } = seen;
    if (errors || !source || !document) {
      const failedAt = source === undefined ? 'request' : document ? 'operation' : 'document';
      return { errors: errors ?? [], failedAt, status: http.status, headers: http.headers };
    }
    const known = this.#known.get(source) ?? { document, operations: new Map() };
    this.#known.set(source, known);
    return known;
  }

  #prepare(document: DocumentNode, node: OperationDefinitionNode): Operation {
    const { schema, limits } = this.#options;
    const nodes = fieldsIn(node.selectionSet, fragmentsOf(document));
    const fields = new Map(nodes.map(({ alias, name }) => [(alias ?? name).value, name.value]));
    return {
      document,
      node,
      type: node.operation,
      name: node.name?.value,
      hasDirectives: document.loc?.source.body.includes('@') ?? true,
      fields,
      fieldNames: [...new Set(fields.values())],
      deprecated: deprecatedFieldsIn(schema, document),
      estimate: estimateOf(schema, limits.maxCost, document, node),
      uses: 0,
    };
  }
}

/** True when no other part of the operation can have run before its field. */
export function isSingleField({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

const listener: GraphQLRequestListener<{ seen: Seen }> = {
  /** Replaces Apollo Server's execution (operations.ts executes). */
  async responseForOperation() {
    return { http: { status: undefined, headers: new HeaderMap() }, body: { kind: 'single', singleResult: {} } };
  },
  async willSendResponse({ source, document, errors, contextValue: { seen } }) {
    Object.assign(seen, { source, document, errors });
  },
};

function apolloServer({ schema, introspection, apq, limits }: DocumentOptions): ApolloServer<{ seen: Seen }> {
  return new ApolloServer<{ seen: Seen }>({
    schema,
    introspection: true,
    // Only texts of persisted queries reach this cache again. Apollo Server awaits the result, so it need not be a promise.
    documentStore: apq
      ? (new LRUCache<string, DocumentNode>({ ...capacity, sizeCalculation: lengthOf }) as never)
      : null,
    parseOptions: { maxTokens: limits.maxTokens },
    validationRules: [
      operationLimits(limits),
      unconditionalSubscriptions,
      ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
    ],
    // When the schema is closed, no error message may reveal its names.
    validationOptions: { hideSuggestions: !introspection },
    ...(!apq && { persistedQueries: false as const }),
    stopOnTerminationSignals: false,
    plugins: [{ requestDidStart: async () => listener }, ...Object.values(disabledPlugins).map((disable) => disable())],
  });
}

const lengthOf = ({ loc }: DocumentNode) => 1 + (loc?.end ?? 0);
