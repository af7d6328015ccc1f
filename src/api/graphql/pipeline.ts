import type { RequestParameters } from '@animal-store/graphql-http/over-http';
import { costOf, type Estimate } from '@animal-store/graphql-limits/cost';
import {
  type DocumentNode,
  defaultFieldResolver,
  type ExecutionResult,
  executeSync,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { forbidden, hasScope } from '../../access/keys/bearer.ts';
import { StoreError } from '../../errors.ts';
import { mostItems } from '../../validation/page.ts';
import { assertIdempotent, claimOfField } from './decorators.ts';
import {
  type Apollo,
  type ApolloResult,
  type BeforeExecution,
  documentCache,
} from './document.ts';
import {
  type GraphQLContext,
  type GraphQLOptions,
  Operation,
  type Outcome,
} from './execution.ts';
import { formatError, logErrors } from './outcome.ts';
import { subscribe } from './subscription.ts';

/**
 * Room for the answer of a mutation, which is kept before it runs. A unit may
 * bring more: ten texts of 6 kB.
 */
const bytesPerUnit = 12_288;

/** Logs the failures of an operation and ends its observation. */
type Finish = (outcome: Outcome) => Outcome;

/**
 * Finds the operations of requests and executes them. An accepted text is
 * cached here, because hashing it and running Apollo's hooks cost as much as a
 * small operation.
 */
export class Operations {
  readonly #documents = documentCache();
  readonly #prepared = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(
    private readonly apollo: Apollo,
    private readonly options: GraphQLOptions,
  ) {}

  async answer(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const { plugins, apollo } = this.options;
    if (plugins.length > 0 || apollo.key !== undefined)
      return this.#answerWithPlugins(parameters, context);
    const found = await this.#find(parameters, context);
    if (found instanceof Operation)
      return this.#perform(found, parameters, context);
    return withoutOperation(found, parameters, context);
  }

  /** @returns the operation, or the errors because of which there is none */
  async #find(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Operation | Outcome> {
    const { query, operationName, extensions } = parameters;
    const text = extensions?.persistedQuery === undefined ? query : undefined;
    let accepted = text && this.#documents.get(text);
    if (!accepted) {
      const { source, document, outcome } = await this.apollo.run(
        parameters,
        context,
      );
      if (outcome.failures || !source || !document) return outcome;
      accepted = this.#documents.get(source) ?? document;
      this.#documents.set(source, accepted);
    }
    try {
      return this.#operation(accepted, operationName);
    } catch (error) {
      return outcomeOf({
        errors: [error as GraphQLError],
        failedAt: 'operation',
      });
    }
  }

  /** @throws GraphQLError when the document has no such operation */
  #operation(
    document: DocumentNode,
    operationName: string | undefined,
  ): Operation {
    const node = getOperationAST(document, operationName);
    if (!node)
      throw executeSync({
        schema: this.options.schema,
        document,
        operationName,
      }).errors?.[0];
    const operation =
      this.#prepared.get(node) ?? new Operation(document, node, this.options);
    this.#prepared.set(node, operation);
    return operation;
  }

  async #perform(
    operation: Operation,
    { variables = {} }: RequestParameters,
    context: GraphQLContext,
  ) {
    const finish = this.#begin(operation, context);
    return finish(
      await this.#run(operation, variables, context).catch(refused),
    );
  }

  /**
   * Answers with Apollo Server's own execution, so that its plugins see the
   * request, every stage, every field and the response, and may change it.
   * Apollo Server has no subscriptions: plugins see their documents only.
   */
  async #answerWithPlugins(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const { variables = {}, operationName } = parameters;
    let execution = undefined as
      | { finish: Finish; charged: Promise<unknown> }
      | undefined;
    const beforeExecution: BeforeExecution = async ({
      document,
      request,
      contextValue,
    }) => {
      const operation = this.#operation(document, request.operationName);
      const finish = this.#begin(operation, context);
      execution = {
        finish,
        charged: this.#checkAndCharge(operation, variables, contextValue),
      };
      await execution.charged;
    };
    const failed = (failure: Error): ApolloResult => ({
      outcome: refused(failure),
    });
    const { document, operation, outcome } = await this.apollo
      .run(parameters, context, beforeExecution)
      .catch(failed);
    if (execution) {
      // Another plugin may have refused the operation while it is still being
      // charged. The outcome has its failure.
      await execution.charged.catch(() => undefined);
      return execution.finish(outcome);
    }
    // Apollo Server executes no subscriptions, and refuses a GET in its own
    // words: both are left to us.
    const isLeft =
      !outcome.failures ||
      (context.request.method === 'GET' && !context.accepted.stream);
    if (!document || !operation || !isLeft)
      return withoutOperation(outcome, parameters, context);
    return this.#perform(
      this.#operation(document, operationName),
      parameters,
      context,
    );
  }

  /** Tells observers of an operation. */
  #begin(operation: Operation, { request, call }: GraphQLContext): Finish {
    const { type, name, fields, fieldNames } = operation;
    call.operation = { name, fields: fieldNames };
    call.isWrite = type === 'mutation';
    const observed = { type, name, fields, call };
    for (const observer of this.options.observers) observer.began?.(observed);
    return (outcome) => {
      if (outcome.failures) logErrors(outcome.failures, request);
      // A stream continues, and reports its own end.
      if (!outcome.stream)
        for (const observer of this.options.observers)
          observer.ended(observed, outcome.errors);
      return { ...outcome, operation };
    };
  }

  async #run(
    operation: Operation,
    variables: Record<string, unknown>,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const estimate = await this.#checkAndCharge(operation, variables, context);
    if (operation.type !== 'subscription')
      return outcomeOf(await operation.execute(variables, context));
    return outcomeOf(
      await subscribe(operation, variables, context, estimate, this.options),
    );
  }

  /**
   * Checks and charges an operation before its execution. @throws StoreError or
   * GraphQLError
   */
  async #checkAndCharge(
    operation: Operation,
    variables: Record<string, unknown>,
    context: GraphQLContext,
  ): Promise<Estimate> {
    const { schema, usage } = this.options;
    const { request, call } = context;
    assertMethod(operation, context);
    if (request.headers[idempotencyKey] !== undefined)
      assertIdempotent(schema, operation);
    const estimate = operation.estimate(variables);
    if (operation.type === 'mutation') {
      const bytes = estimate.cost * bytesPerUnit;
      request.server.unread.hold(request, context.reply, bytes);
    }
    if (call.meter && (estimate.fixed > 0 || estimate.isNested))
      await charge(operation, estimate, context);
    if (call.caller) {
      for (const [field, removal] of operation.deprecated)
        usage.called(call.caller, field, removal);
    }
    context.operation = operation;
    return estimate;
  }
}

/**
 * Ends a request without an executable operation: only the client's name for it
 * is known.
 */
function withoutOperation(
  outcome: Outcome,
  { operationName }: RequestParameters,
  { call, request }: GraphQLContext,
): Outcome {
  call.operation = { name: operationName, fields: undefined };
  if (outcome.failures) logErrors(outcome.failures, request);
  return outcome;
}

function outcomeOf(
  result: Omit<Outcome, 'errors'> & Pick<ExecutionResult, 'errors'>,
): Outcome {
  const { errors: failures } = result;
  return failures
    ? { ...result, failures, errors: failures.map(formatError) }
    : (result as Outcome);
}

/** @param failure of an operation that has not run */
function refused(failure: Error): Outcome {
  const error =
    failure instanceof GraphQLError
      ? failure
      : new GraphQLError(failure.message, { originalError: failure });
  return outcomeOf({ errors: [error], status: 500 });
}

/**
 * Rejects GET for mutations, because a link must not change data. Subscriptions
 * may use GET if the client accepts events.
 */
function assertMethod(
  { type }: Operation,
  { request, accepted }: GraphQLContext,
): void {
  if (type === 'query' || (type === 'subscription' && accepted.stream)) return;
  if (request.method !== 'POST') {
    const message =
      'By GET only queries are answered: send a mutation by POST, and a subscription with an `Accept` that names a stream.';
    throw new StoreError('METHOD_NOT_ALLOWED', message);
  }
  if (type !== 'subscription') return;
  const message =
    'A subscription is a stream: send `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';
  throw new StoreError('NOT_ACCEPTABLE', message);
}

/**
 * Charges work that no root field charges: introspection, leaf fields that are
 * not free, and operations with costly nested fields, whose unused units are
 * returned at the end. A subscription is charged per event.
 *
 * @throws StoreError TOO_MANY_REQUESTS
 */
async function charge(
  { type }: Operation,
  estimate: Estimate,
  context: GraphQLContext,
): Promise<void> {
  const { cost, fixed, rootFields, isNested } = estimate;
  const { meter } = context.call;
  if (type === 'subscription') return;
  if (fixed > 0) await meter?.take(fixed);
  if (!isNested) return;
  // Takes one unit for each root field but the last, and reserves the rest of
  // the cost.
  if (rootFields > 1) await meter?.take(rootFields - 1);
  await meter?.reserve(cost - fixed - (rootFields - 1));
}

/**
 * Requires the scope `write` for mutations, and charges root fields their
 * maximum cost before they run, when a quota is configured. Operations with
 * costly nested fields are charged as a whole.
 */
export function guardRoots(schema: GraphQLSchema): void {
  const mutations = schema.getMutationType();
  for (const type of [
    schema.getQueryType(),
    mutations,
    schema.getSubscriptionType(),
  ]) {
    for (const field of Object.values(type?.getFields() ?? {})) {
      const { resolve = defaultFieldResolver } = field;
      const cost = costOf(field, true, mostItems);
      field.resolve = (root, args, context: GraphQLContext, info) => {
        const { call } = context;
        const { caller, meter } = call;
        if (type === mutations && !hasScope(caller, 'write'))
          return Promise.reject(forbidden('write', caller));
        const run = async () => {
          // Mutations run one after another.
          if (type === mutations) call.claim = claimOfField(context, info);
          return resolve(root, args, context, info);
        };
        if (meter) return meter.run(cost({ args, childComplexity: 0 }), run);
        return type === mutations ? run() : resolve(root, args, context, info);
      };
    }
  }
}
