import type { EventStream } from '@animal-store/graphql-http/event-stream';
import type { Accepted, Answered } from '@animal-store/graphql-http/over-http';
import { type Estimate, estimateOf } from '@animal-store/graphql-limits/cost';
import { fieldsIn, fragmentsOf } from '@animal-store/graphql-limits/limits';
import type { ApolloServerPlugin } from '@apollo/server';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import {
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import type { CompiledQuery } from 'graphql-jit';
import { deprecatedFieldsIn } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import type { Call } from '../../call.ts';
import type { Config } from '../../config/config.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import { mostItems } from '../../validation/page.ts';

// What the steps of a GraphQL request pass on: its context, its operation and
// the outcome.

/**
 * Every error about a variable repeats the whole input, so a few are enough.
 */
export const executionOptions = { maxCoercionErrors: 5 };

/** The settings of the GraphQL API, and what it works with. */
export interface GraphQLOptions extends Omit<Config['graphql'], 'federation'> {
  schema: GraphQLSchema;
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
  /**
   * Plugins of Apollo Server. With any, or Apollo's key, Apollo Server
   * executes.
   */
  plugins: readonly ApolloServerPlugin<GraphQLContext>[];
  logger: Pick<FastifyBaseLogger, 'debug' | 'info' | 'warn' | 'error'>;
}

/** The context of resolvers. */
export interface GraphQLContext {
  readonly call: Call;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly accepted: Accepted;
  /** Set before execution. */
  operation?: Operation;
}

/** An operation of a valid document, with everything derived from it once. */
export class Operation {
  readonly type: `${OperationDefinitionNode['operation']}`;
  readonly name: string | undefined;
  /** Whether its document has conditions. */
  readonly hasDirectives: boolean;
  /** Names of its root fields in the schema, by response key. */
  readonly fields: ReadonlyMap<string, string>;
  /** The distinct names of its root fields in the schema. */
  readonly fieldNames: readonly string[];
  /**
   * The removal dates of the deprecated fields in its document, by their
   * coordinates.
   */
  readonly deprecated: ReadonlyMap<string, Date>;
  /** @throws GraphQLError QUERY_TOO_COSTLY */
  readonly estimate: (variables: Record<string, unknown>) => Estimate;
  #uses = 0;
  #compiled: CompiledQuery['query'] | undefined;
  /**
   * How often graphql-jit has accepted variables (10 to 100) less how often
   * not. Below zero the operation is interpreted, because both would check
   * them.
   */
  #accepted = 10;

  constructor(
    readonly document: DocumentNode,
    readonly node: OperationDefinitionNode,
    private readonly options: Pick<
      GraphQLOptions,
      'schema' | 'limits' | 'jit' | 'introspection'
    >,
  ) {
    const { schema, limits } = options;
    this.type = node.operation;
    this.name = node.name?.value;
    this.hasDirectives = hasDirectives(document);
    const roots = fieldsIn(node.selectionSet, fragmentsOf(document));
    this.fields = new Map(
      roots.map(({ alias, name }) => [(alias ?? name).value, name.value]),
    );
    this.fieldNames = [...new Set(this.fields.values())];
    this.deprecated = deprecatedFieldsIn(schema, document);
    this.estimate = estimateOf(schema, document, node, {
      maxCost: limits.maxCost,
      mostItems,
    });
  }

  /**
   * Executes with graphql-jit. It compiles an operation at its second use,
   * because compiling costs more than one use saves, and an attacker could
   * trigger it for free. graphql-js executes operations that graphql-jit cannot
   * compile or rejects before execution.
   */
  async execute(
    variableValues: Record<string, unknown>,
    contextValue: GraphQLContext,
  ): Promise<ExecutionResult> {
    const { document, name: operationName } = this;
    const { schema, jit, introspection } = this.options;
    this.#uses += 1;
    if (this.#uses === 2 && jit && isSuitable(this)) {
      const { compileQuery, isCompiledQuery } = await import('graphql-jit');
      const compiled = compileQuery(schema, document, operationName, {
        disablingCapturingStackErrors: true,
      });
      if (isCompiledQuery(compiled)) this.#compiled = compiled.query;
    }
    const compiled = this.#accepted < 0 ? undefined : this.#compiled;
    const result = await compiled?.(undefined, contextValue, variableValues);
    if (result && result.data !== undefined) {
      this.#accepted = Math.min(100, this.#accepted + 1);
      return result.errors
        ? { data: result.data, errors: result.errors.map(asGraphQLError) }
        : result;
    }
    if (result) this.#accepted -= 1;
    // Without data, graphql-jit has rejected the variables. graphql-js accepts
    // more of them (defaults of non-null input fields, int64 as bigint), and
    // its error messages are the standard.
    const hideSuggestions = !introspection;
    const options = executionOptions;
    return execute({
      schema,
      document,
      operationName,
      contextValue,
      variableValues,
      options,
      hideSuggestions,
    });
  }
}

function hasDirectives(document: DocumentNode): boolean {
  let isFound = false;
  visit(document, {
    Directive() {
      isFound = true;
      return BREAK;
    },
  });
  return isFound;
}

/**
 * True when graphql-jit returns the same as graphql-js
 * (`test/deep/graphql/compiled.test.ts` compares them).
 *
 * - Where conditions meet fragments, it returns wrong data: a fragment counts
 *   as visited after its first spread, even a conditional one, and a field in a
 *   fragment loses the condition of its parent
 *   (https://github.com/zalando-incubator/graphql-jit/issues/111). Executable
 *   documents have no other directives.
 * - It assigns to aliases: an alias `__proto__` would not become a member.
 * - Introspection blocks the process ten times as long when it is compiled.
 * - From a variable inside an input object it accepts null, even for a field
 *   that has a default and cannot be null
 *   (https://github.com/zalando-incubator/graphql-jit/issues/230).
 * - It runs the mutations after a failed one, although the response says that
 *   there is no data.
 *
 * A document with several operations is interpreted, because the number of its
 * compiled functions would be unbounded: two kilobytes can contain a hundred
 * operations.
 */
export function isSuitable({
  document,
  node,
  type,
  hasDirectives,
}: Operation): boolean {
  const { definitions, loc } = document;
  const operations = definitions.filter(
    ({ kind }) => kind === Kind.OPERATION_DEFINITION,
  );
  const hasTrap = /__proto__|__(?:schema|type)\b/.test(loc?.source.body ?? '');
  const isSeries = type === 'mutation' && !isSingleField(node);
  const isRefused = isSeries || hasDirectives || hasTrap;
  if (isRefused || operations.length > 1) return false;
  let isPlain = true;
  visit(document, {
    ObjectField({ value }) {
      if (value.kind === Kind.VARIABLE) isPlain = false;
    },
  });
  return isPlain;
}

/**
 * graphql-jit's errors lack parts of graphql-js's, for example `extensions` and
 * `toJSON` (https://github.com/zalando-incubator/graphql-jit/issues/234).
 */
function asGraphQLError({
  message,
  path,
  locations,
  originalError,
}: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), {
    locations,
  });
}

/** True when no other part of the operation can have run before its field. */
export function isSingleField({
  selectionSet: { selections },
}: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

/** The outcome of a request. */
export interface Outcome extends Answered {
  /** As they are sent. */
  errors?: readonly GraphQLFormattedError[] | undefined;
  /** The errors behind them, which are logged. */
  failures?: readonly GraphQLError[] | undefined;
  /** The headers from Apollo Server. */
  headers?: Iterable<[string, string]>;
  /** The events of a subscription, instead of data. */
  stream?: EventStream;
  /** From plugins. */
  extensions?: unknown;
  /** Undefined when the request has no executable operation. */
  operation?: Operation;
}
