import type { RequestParameters } from '@animal-store/graphql-http/over-http';
import { estimateOf } from '@animal-store/graphql-limits/cost';
import { operationLimits, rootFieldsOf, unconditionalSubscriptions } from '@animal-store/graphql-limits/limits';
import {
  ApolloServer,
  type ApolloServerPlugin,
  type GraphQLRequestContext,
  type GraphQLResponse,
  HeaderMap,
} from '@apollo/server';
import * as disabledPlugins from '@apollo/server/plugin/disabled';
import {
  type DocumentNode,
  executeSync,
  GraphQLError,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { deprecatedFieldsIn } from '../../access/deprecations/deprecation.ts';
import { mostItems } from '../../storage/input/page.ts';
import { formatError } from './format-error.ts';
import type { GraphQLContext, GraphQLOptions, Operation, Result } from './operation.ts';

/** Limits of a document cache: the number of documents, and the total length of their texts in characters. */
const capacity = { max: 500, maxSize: 1_000_000 };

type Admit = (document: DocumentNode, operationName: string | undefined, context: GraphQLContext) => Promise<unknown>;

/** A request on its way through Apollo Server. */
interface Passage {
  /** Apollo Server's own context of the request. */
  seen?: GraphQLRequestContext<PassageContext>;
  /** Set only with plugins: called before Apollo Server executes. Otherwise Apollo Server only parses and validates. */
  admit?: Admit | undefined;
  /** The failure of a plugin. */
  failure?: Error;
}
type PassageContext = GraphQLContext & { readonly passage: Passage };

/** The results of Apollo Server for a request. */
type Passed = Pick<GraphQLRequestContext<PassageContext>, 'document' | 'operation' | 'errors'> &
  Pick<Result, 'failedAt'> & { source: string | undefined; response: GraphQLResponse };

type DocumentsOptions = Pick<
  GraphQLOptions,
  'schema' | 'introspection' | 'apq' | 'limits' | 'plugins' | 'apollo' | 'logger'
>;

/**
 * Finds the operations of requests. Apollo Server resolves persisted queries, parses and validates; with plugins it
 * also executes queries and mutations. An accepted text is cached here, because hashing it and running Apollo's hooks
 * cost as much as a small operation.
 */
export class Documents {
  readonly #known = new LRUCache<string, DocumentNode>({ ...capacity, sizeCalculation: (_, text) => 1 + text.length });
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  private constructor(
    private readonly options: DocumentsOptions,
    private readonly server: ApolloServer<PassageContext>,
  ) {}

  static async open(options: DocumentsOptions): Promise<Documents> {
    const server = apolloServer(options);
    await server.start();
    return new Documents(options, server);
  }

  close(): Promise<void> {
    return this.server.stop();
  }

  /** @returns the operation, or the errors because of which there is none */
  async find(parameters: RequestParameters, context: GraphQLContext): Promise<Operation | Result> {
    const { query, operationName, extensions } = parameters;
    const text = extensions?.persistedQuery === undefined ? query : undefined;
    const document = (text && this.#known.get(text)) || (await this.#acceptDocument(parameters, context));
    if (!('definitions' in document)) return document;
    try {
      return this.operation(document, operationName);
    } catch (error) {
      return { errors: [error as GraphQLError], failedAt: 'operation' };
    }
  }

  async #acceptDocument(parameters: RequestParameters, context: GraphQLContext): Promise<DocumentNode | Result> {
    const { source, document, errors, failedAt, response } = await this.pass(parameters, context);
    const { status, headers } = response.http;
    if (errors || !source || !document) return { errors: errors ?? [], failedAt, status, headers };
    const known = this.#known.get(source) ?? document;
    this.#known.set(source, known);
    return known;
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

  /**
   * Passes a request through Apollo Server: persisted queries, parsing, validation, and with `admit` execution. It does
   * not pass Apollo's HTTP layer (`executeHTTPGraphQLRequest`), which loses digits of int64 variables by GET.
   *
   * @throws Error of a plugin
   */
  async pass(parameters: RequestParameters, context: GraphQLContext, admit?: Passage['admit']): Promise<Passed> {
    const passage: Passage = { admit };
    const request = admit ? { ...parameters, http: httpOf(context) } : parameters;
    const response = await this.server
      .executeOperation(request, { contextValue: { ...context, passage } })
      .catch((error: Error) => Promise.reject(passage.failure ?? error));
    const { source, document, operation, errors } = passage.seen ?? {};
    const failedAt = source === undefined ? 'request' : document ? 'operation' : 'document';
    return { source, document, operation, errors, failedAt, response };
  }
}

/**
 * The request as Apollo's plugins know it. Its GET is for queries only, and a client of a stream may subscribe by GET.
 */
function httpOf({ request: { method, url, headers, body }, accepted }: GraphQLContext) {
  const given = Object.entries(headers).map(([name, value]) => [name, `${value}`] as const);
  const at = url.indexOf('?');
  return {
    method: method === 'GET' && accepted.stream ? 'POST' : method,
    headers: new HeaderMap(given),
    search: at < 0 ? '' : url.slice(at),
    body,
  };
}

/** The service's part of Apollo Server's life of a request. It comes before all other plugins. */
function guard(introspection: boolean): ApolloServerPlugin<PassageContext> {
  return {
    async requestDidStart(seen) {
      const { passage } = seen.contextValue;
      passage.seen = seen;
      return {
        async didResolveOperation({ document, operation, request, contextValue }) {
          if (!passage.admit || operation?.operation === 'subscription') return;
          await passage.admit(document, request.operationName, contextValue);
        },
        async responseForOperation({ operation }) {
          if (passage.admit && operation?.operation !== 'subscription') return null;
          return { http: { headers: new HeaderMap() }, body: { kind: 'single', singleResult: {} } };
        },
        async didEncounterErrors({ errors }) {
          // graphql-js can omit names from errors about variables, and Apollo Server does not let it.
          if (!introspection) for (const error of errors) error.message = error.message.replace(suggestion, '');
        },
      };
    },
    async unexpectedErrorProcessingRequest({ requestContext, error }) {
      requestContext.contextValue.passage.failure = error;
    },
  };
}

const suggestion = / ?Did you mean (?:the enum value )?"[^?]*\?$/;

function apolloServer({ schema, introspection, apq, limits, plugins, apollo, logger }: DocumentsOptions) {
  // With its key, Apollo Server reports usage, and the schema if APOLLO_SCHEMA_REPORTING says so.
  const reporters = apollo.key === undefined ? [] : ['UsageReporting', 'SchemaReporting'];
  const enabled = new Set([...plugins.map(idOf), ...reporters]);
  const disabled = Object.values(disabledPlugins).map((disable) => disable());
  return new ApolloServer<PassageContext>({
    schema,
    introspection: true,
    apollo,
    logger,
    // Without plugins, only texts of persisted queries reach this cache again. Apollo Server awaits the result, so it
    // need not be a promise.
    documentStore:
      apq || enabled.size > 0
        ? (new LRUCache<string, DocumentNode>({ ...capacity, sizeCalculation: lengthOf }) as never)
        : null,
    parseOptions: { maxTokens: limits.maxTokens },
    executionOptions,
    validationRules: [
      operationLimits(limits),
      unconditionalSubscriptions,
      ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
    ],
    // When the schema is closed, no error message may reveal its names.
    validationOptions: { hideSuggestions: !introspection },
    ...(!apq && { persistedQueries: false as const }),
    formatError: (formatted, error) => (error instanceof GraphQLError ? formatError(error) : formatted),
    stopOnTerminationSignals: false,
    plugins: [guard(introspection), ...plugins, ...disabled.filter((plugin) => !enabled.has(idOf(plugin)))],
  });
}

/** Every error about a variable repeats the whole input, so a few are enough. */
export const executionOptions = { maxCoercionErrors: 5 };

/** The name of a plugin that Apollo Server installs by itself. It rejects one that is both given and disabled. */
const idOf = (plugin: ApolloServerPlugin<never>) =>
  (plugin as { __internal_plugin_id__?: string }).__internal_plugin_id__;

const lengthOf = ({ loc }: DocumentNode) => 1 + (loc?.end ?? 0);
