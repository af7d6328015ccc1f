import {
  type Estimate,
  estimateOf,
  type Values,
} from '@animal-store/graphql-limits/cost';
import {
  fieldsIn,
  fragmentsOf,
  operationLimits,
  unconditionalSubscriptions,
} from '@animal-store/graphql-limits/limits';
import {
  ApolloServer,
  type ApolloServerOptions,
  type ApolloServerPlugin,
  type GraphQLRequest,
  type GraphQLRequestContext,
  HeaderMap,
} from '@apollo/server';
import * as disabledPlugins from '@apollo/server/plugin/disabled';
import type { FastifyBaseLogger } from 'fastify';
import {
  type DocumentNode,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  type ValidationRule,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.ts';
import { mostFor } from '../../validation/page.ts';
import { formatError, graphQLErrorOf, type Outcome } from './answer.ts';
import type { Execute } from './context.ts';
import { type Uses, usesOf } from './scopes.ts';

/**
 * Every error about a variable repeats the whole input, so a few are enough.
 */
export const executionOptions = { maxCoercionErrors: 5 };

/** Each costs a stack and suggestions. */
const maxErrors = 50;

/** Prepares the execution of an operation. */
export type Executor = (operation: Operation) => Execute;

export interface DocumentOptions
  extends Pick<Config['graphql'], 'introspection' | 'apq' | 'limits'> {
  schema: GraphQLSchema;
  logger: FastifyBaseLogger;
  /** Whether the operator has registered all documents, and so their names. */
  isTrusted: boolean;
  executor: Executor;
}

/** An operation of a valid document, with everything derived from it once. */
export class Operation {
  readonly type: `${OperationDefinitionNode['operation']}`;
  readonly name: string | undefined;
  /** Whether the operator has registered its document, and so its name. */
  readonly isTrusted: boolean;
  /** Whether its document has conditions. */
  readonly hasDirectives: boolean;
  /** Names of its root fields in the schema, by response key. */
  readonly fields: ReadonlyMap<string, string>;
  /** The distinct names of its root fields in the schema. */
  readonly fieldNames: readonly string[];
  /** True for several mutations, which run one after another. */
  readonly isSeries: boolean;
  readonly uses: Uses;
  /** @throws GraphQLError QUERY_TOO_COSTLY */
  readonly estimate: (variables: Values) => Estimate;
  readonly execute: Execute;

  constructor(
    readonly document: DocumentNode,
    readonly node: OperationDefinitionNode,
    { schema, limits, isTrusted, executor }: DocumentOptions,
  ) {
    const { maxCost } = limits;
    const roots = fieldsIn(node.selectionSet, fragmentsOf(document));
    this.type = node.operation;
    this.name = node.name?.value;
    this.isTrusted = isTrusted;
    // Only a node has this member, whatever its texts are.
    const directive = '"kind":"Directive"';
    this.hasDirectives = JSON.stringify(document).includes(directive);
    this.fields = new Map(
      roots.map(({ alias, name }) => [(alias ?? name).value, name.value]),
    );
    this.fieldNames = [...new Set(this.fields.values())];
    this.isSeries = this.type === 'mutation' && this.fields.size > 1;
    this.uses = usesOf(schema, document, node);
    this.estimate = estimateOf(schema, document, node, { maxCost, mostFor });
    this.execute = executor(this);
  }
}

/** At most 500 documents, whose texts have at most a million characters. */
export const documentCache = () =>
  new LRUCache<string, DocumentNode>({
    max: 500,
    maxSize: 1_000_000,
    sizeCalculation: ({ loc }) => 1 + (loc?.end ?? 0),
  });

/** What a plugin of ours keeps of a request. */
export interface Run {
  found?: GraphQLRequestContext<object>;
  /** The failure of a plugin. */
  failure?: Error;
}

/**
 * Apollo Server copies the context for each request, so `run` is one object,
 * which all copies share.
 */
interface RunContext {
  readonly run: Run;
}

/**
 * Apollo Server. It resolves persisted queries, parses and validates within the
 * limits. With other plugins it may execute, too.
 */
export class Apollo<
  Context extends RunContext = RunContext,
> extends ApolloServer<Context> {
  constructor(
    { schema, introspection, apq, limits, logger }: DocumentOptions,
    {
      apollo,
      plugins = [notExecuting, ...disabled()],
    }: Pick<ApolloServerOptions<Context>, 'apollo' | 'plugins'> = {},
  ) {
    const rules: ValidationRule[] = [
      operationLimits({ ...limits, maxFields: limits.maxTokens }),
      unconditionalSubscriptions,
    ];
    if (!introspection) rules.push(NoSchemaIntrospectionCustomRule);
    super({
      schema,
      introspection: true,
      apollo,
      logger,
      // Apollo Server awaits the result, so it need not be a promise.
      documentStore: documentCache() as never,
      parseOptions: { maxTokens: limits.maxTokens },
      executionOptions,
      validationRules: rules,
      // When the schema is closed, no error message may reveal its names.
      validationOptions: { maxErrors, hideSuggestions: !introspection },
      ...(!apq && { persistedQueries: false as const }),
      formatError: (_, error) => formatError(graphQLErrorOf(error as Error)),
      stopOnTerminationSignals: false,
      plugins: [observing, ...plugins],
    });
  }

  /** @throws Error of a plugin */
  async run(request: GraphQLRequest, contextValue: Context) {
    const { run } = contextValue;
    const response = await this.executeOperation(request, {
      contextValue,
    }).catch((error: Error) => Promise.reject(run.failure ?? error));
    const { body, http } = response;
    const { found } = run;
    // Apollo Server has formatted these errors.
    const { singleResult } = body as typeof noBody;
    const failures = found?.errors;
    const outcome: Outcome = { ...singleResult, ...http, failures };
    return { found, outcome };
  }
}

export const disabled = () =>
  Object.values(disabledPlugins).map((disable) => disable());

/** A response other than null takes the place of the execution. */
export const emptyResponse = async () => ({
  http: { headers: new HeaderMap() },
  body: noBody,
});

const noBody = { kind: 'single' as const, singleResult: {} };

const notExecuting: ApolloServerPlugin = {
  requestDidStart: async () => ({ responseForOperation: emptyResponse }),
};

const observing: ApolloServerPlugin<RunContext> = {
  async requestDidStart(requestContext) {
    requestContext.contextValue.run.found = requestContext;
  },
  async unexpectedErrorProcessingRequest({ requestContext, error }) {
    requestContext.contextValue.run.failure = error;
  },
};
