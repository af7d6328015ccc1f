import {
  ApolloServer,
  type ApolloServerPlugin,
  type GraphQLRequestContext,
  type GraphQLResponse,
  HeaderMap,
} from '@apollo/server';
import * as disabledPlugins from '@apollo/server/plugin/disabled';
import { type DocumentNode, GraphQLError, NoSchemaIntrospectionCustomRule } from 'graphql';
import { LRUCache } from 'lru-cache';
import { operationLimits, unconditionalSubscriptions } from '../../../packages/graphql-limits/src/limits.ts';
import type { Refusal } from './documents.ts';
import type { GraphQLOptions } from './graphql.ts';
import type { GraphQLContext, RequestParameters } from './request.ts';
import { formatError } from './response.ts';

export type ApolloOptions = Pick<
  GraphQLOptions,
  'schema' | 'introspection' | 'apq' | 'limits' | 'plugins' | 'apollo' | 'logger'
>;

/** Limits of a document cache: the number of documents, and the total length of their texts in characters. */
export const capacity = { max: 500, maxSize: 1_000_000 };

type Admit = (document: DocumentNode, operationName: string | undefined, context: GraphQLContext) => Promise<unknown>;

/** A request on its way through Apollo Server. */
interface Passage {
  /** Apollo Server's own context of the request. */
  seen?: GraphQLRequestContext<PassageContext>;
  /** Called before Apollo Server executes a query or mutation. Without it, Apollo Server executes nothing. */
  admit?: Admit | undefined;
  /** The failure of a plugin. */
  failure?: Error;
}
type PassageContext = GraphQLContext & { readonly passage: Passage };

/** The results of Apollo Server for a request. */
type Passed = Pick<GraphQLRequestContext<PassageContext>, 'document' | 'operation' | 'errors'> &
  Pick<Refusal, 'failedAt'> & { source: string | undefined; response: GraphQLResponse };

/**
 * Apollo Server. It resolves persisted queries, parses and validates. With plugins it also executes queries and mutations;
 * otherwise `operations.ts` does.
 */
export class Apollo {
  readonly #server: ApolloServer<PassageContext>;

  private constructor(options: ApolloOptions) {
    this.#server = apolloServer(options);
  }

  static async open(options: ApolloOptions): Promise<Apollo> {
    const apollo = new Apollo(options);
    await apollo.#server.start();
    return apollo;
  }

  close(): Promise<void> {
    return this.#server.stop();
  }

  /**
   * Passes a request through Apollo Server: persisted queries, parsing, validation, and with `admit` execution. It does not
   * pass Apollo's HTTP layer (`executeHTTPGraphQLRequest`), which loses digits of int64 variables by GET.
   *
   * @throws Error of a plugin
   */
  async pass(parameters: RequestParameters, context: GraphQLContext, admit?: Passage['admit']): Promise<Passed> {
    const passage: Passage = { admit };
    const request = admit ? { ...parameters, http: httpOf(context) } : parameters;
    const response = await this.#server
      .executeOperation(request, { contextValue: { ...context, passage } })
      .catch((error: Error) => Promise.reject(passage.failure ?? error));
    const { source, document, operation, errors } = passage.seen ?? {};
    const failedAt = source === undefined ? 'request' : document ? 'operation' : 'document';
    return { source, document, operation, errors, failedAt, response };
  }
}

/** The request as Apollo's plugins know it. Its GET is for queries only, and a client of a stream may subscribe by GET. */
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

function apolloServer({ schema, introspection, apq, limits, plugins, apollo, logger }: ApolloOptions) {
  // With its key, Apollo Server reports usage, and the schema if APOLLO_SCHEMA_REPORTING says so.
  const reporters = apollo.key === undefined ? [] : ['UsageReporting', 'SchemaReporting'];
  const enabled = new Set([...plugins.map(idOf), ...reporters]);
  const disabled = Object.values(disabledPlugins).map((disable) => disable());
  return new ApolloServer<PassageContext>({
    schema,
    introspection: true,
    apollo,
    logger,
    // Without plugins, only texts of persisted queries reach this cache again. Apollo Server awaits the result, so it need
    // not be a promise.
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
