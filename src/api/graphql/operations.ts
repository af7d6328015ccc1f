import { serverSentEvents } from '@animal-store/graphql-http/format';
import type { RequestParameters } from '@animal-store/graphql-http/over-http';
import type { Estimate } from '@animal-store/graphql-limits/cost';
import { type DocumentNode, GraphQLError } from 'graphql';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { StoreError } from '../../errors.ts';
import { Apollo, type ApolloResult, type BeforeExecution } from './apollo.ts';
import { assertIdempotent } from './decorators.ts';
import { Documents } from './documents.ts';
import { executeOperation } from './execution.ts';
import { formatError, logErrors } from './format-error.ts';
import { type GraphQLContext, type GraphQLOptions, type Operation, type Outcome, type Result } from './operation.ts';

/** Logs the failures of an operation and ends its observation. */
type Finish = (outcome: Outcome) => Outcome;

/** Executes the operations of requests. */
export class Operations {
  private constructor(
    private readonly apollo: Apollo,
    private readonly documents: Documents,
    private readonly options: GraphQLOptions,
  ) {}

  static async open(options: GraphQLOptions): Promise<Operations> {
    const apollo = await Apollo.start(options);
    return new Operations(apollo, new Documents(apollo, options), options);
  }

  close(): Promise<void> {
    return this.apollo.stop();
  }

  async answer(parameters: RequestParameters, context: GraphQLContext): Promise<Outcome> {
    const { plugins, apollo } = this.options;
    if (plugins.length > 0 || apollo.key !== undefined) return this.#answerWithPlugins(parameters, context);
    const found = await this.documents.find(parameters, context);
    if ('node' in found) return this.#perform(found, parameters, context);
    return withoutOperation(outcomeOf(found), parameters, context);
  }

  async #perform(operation: Operation, { variables = {} }: RequestParameters, context: GraphQLContext) {
    const finish = this.#begin(operation, context);
    return finish(await this.#run(operation, variables, context).catch(refused));
  }

  /**
   * Answers with Apollo Server's own execution, so that its plugins see the request, every stage, every field and the
   * response, and may change it. Apollo Server has no subscriptions: plugins see their documents only.
   */
  async #answerWithPlugins(parameters: RequestParameters, context: GraphQLContext): Promise<Outcome> {
    const { variables = {}, operationName } = parameters;
    let begun = undefined as { finish: Finish; checked: Promise<unknown> } | undefined;
    const beforeExecution: BeforeExecution = async ({ document, request, contextValue }) => {
      const operation = this.documents.operation(document, request.operationName);
      const finish = this.#begin(operation, context);
      begun = { finish, checked: this.#checkAndCharge(operation, variables, contextValue) };
      await begun.checked;
    };
    const result = await this.apollo.run(parameters, context, beforeExecution).catch(refused);
    // Another plugin may have refused the operation while it was charged.
    await begun?.checked.catch(() => undefined);
    const finish = begun?.finish ?? ((outcome: Outcome) => withoutOperation(outcome, parameters, context));
    const hasPluginFailed = !('response' in result);
    if (hasPluginFailed) return finish(result);
    if (!begun && isLeftToService(result, context)) {
      return this.#perform(this.documents.operation(result.document, operationName), parameters, context);
    }
    return finish(outcomeOfApollo(result));
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
      if (!outcome.stream) for (const observer of this.options.observers) observer.ended(observed, outcome.errors);
      return { ...outcome, operation };
    };
  }

  async #run(operation: Operation, variables: Record<string, unknown>, context: GraphQLContext): Promise<Outcome> {
    const { schema, observers } = this.options;
    const { isNested, fixed } = await this.#checkAndCharge(operation, variables, context);
    if (operation.type !== 'subscription')
      return outcomeOf(await executeOperation(operation, variables, context, this.options));
    const format = context.accepted.stream ?? serverSentEvents;
    const units = 1 + fixed;
    const subscription = { operation, variables, context, format, isFlat: !isNested, units, schema, observers };
    return outcomeOf(await context.request.server.subscriptions.open(subscription));
  }

  /** Checks and charges an operation before its execution. @throws StoreError or GraphQLError */
  async #checkAndCharge(
    operation: Operation,
    variables: Record<string, unknown>,
    context: GraphQLContext,
  ): Promise<Estimate> {
    const { schema, usage } = this.options;
    const { request } = context;
    assertMethod(operation, context);
    if (request.headers[idempotencyKey] !== undefined) assertIdempotent(schema, operation);
    const estimate = operation.estimate(variables);
    if (request.meter && (estimate.fixed > 0 || estimate.isNested)) await charge(operation, estimate, context);
    if (request.caller) {
      for (const [field, removal] of operation.deprecated) usage.called(request.caller, field, removal);
    }
    context.operation = operation;
    return estimate;
  }
}

/** Ends a request without an executable operation: only the client's name for it is known. */
function withoutOperation(
  outcome: Outcome,
  { operationName }: RequestParameters,
  { call, request }: GraphQLContext,
): Outcome {
  call.operation = { name: operationName, fields: undefined };
  if (outcome.failures) logErrors(outcome.failures, request);
  return outcome;
}

/** True for a subscription, which Apollo Server does not execute, and for a GET that it refuses in its own words. */
function isLeftToService(
  result: ApolloResult,
  { request, accepted }: GraphQLContext,
): result is ApolloResult & { document: DocumentNode } {
  const isPlainGet = request.method === 'GET' && !accepted.stream;
  return result.document !== undefined && result.operation !== undefined && (!result.errors || isPlainGet);
}

/** The outcome of an operation that Apollo Server has executed or refused. It has formatted the errors. */
function outcomeOfApollo({ response: { body, http }, errors: failures, failedAt }: ApolloResult): Outcome {
  const result = body.kind === 'single' ? body.singleResult : {};
  return { ...result, failures, failedAt, status: http.status, headers: http.headers };
}

/** Formats the errors of a result. */
function outcomeOf(result: Result): Outcome {
  const { errors: failures } = result;
  return failures ? { ...result, failures, errors: failures.map(formatError) } : (result as Outcome);
}

/** @param failure of an operation that has not run */
function refused(failure: Error): Outcome {
  const error =
    failure instanceof GraphQLError ? failure : new GraphQLError(failure.message, { originalError: failure });
  const errors = [formatError(error)];
  return { errors, failures: [error], status: errors[0]?.extensions?.status as number };
}

/**
 * Rejects GET for mutations, because a link must not change data. Subscriptions may use GET if the client accepts
 * events.
 */
function assertMethod({ type }: Operation, { request, accepted }: GraphQLContext): void {
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
 * Charges work that no root field charges: introspection, leaf fields that are not free, and operations with costly
 * nested fields, whose unused units are returned at the end. A subscription is charged per event.
 *
 * @throws StoreError TOO_MANY_REQUESTS
 */
async function charge({ type }: Operation, estimate: Estimate, context: GraphQLContext): Promise<void> {
  const { cost, fixed, rootFields, isNested } = estimate;
  const { meter } = context.request;
  if (type === 'subscription') return;
  if (fixed > 0) await meter?.take(fixed);
  if (!isNested) return;
  // Reserves one unit for each root field but the last, and for that one the rest of the cost.
  if (rootFields > 1) await meter?.take(rootFields - 1);
  await meter?.reserve(cost - fixed - (rootFields - 1));
}
