import {
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  visit,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Estimate } from '../../../packages/graphql-limits/src/cost.ts';
import type { RequestParameters } from '../../../packages/graphql-over-http/src/over-http.ts';
import { serverSentEvents } from '../../../packages/graphql-streams/src/format.ts';
import { idempotencyKey } from '../../access/idempotency/idempotency-key.ts';
import { StoreError } from '../../errors.ts';
import { assertRepeatable } from './decorators.ts';
import { type Documents, executionOptions } from './documents.ts';
import { formatError, logErrors } from './format-error.ts';
import {
  type GraphQLContext,
  type GraphQLOptions,
  isSingleField,
  type Operation,
  type Outcome,
  type Result,
} from './operation.ts';

/** Logs the failures of an operation and ends its observation. */
type End = (outcome: Outcome) => Outcome;

/** Executes the operations of requests. */
export class Operations {
  constructor(
    private readonly documents: Documents,
    private readonly options: GraphQLOptions,
  ) {}

  async answer(parameters: RequestParameters, context: GraphQLContext): Promise<Outcome> {
    const { plugins, apollo } = this.options;
    if (plugins.length > 0 || apollo.key !== undefined) return this.#answerWithPlugins(parameters, context);
    const found = await this.documents.find(parameters, context);
    if ('node' in found) return this.#perform(found, parameters, context);
    return withoutOperation(outcomeOf(found), parameters, context);
  }

  async #perform(operation: Operation, { variables = {} }: RequestParameters, context: GraphQLContext) {
    const end = this.#begin(operation, context);
    return end(await this.#run(operation, variables, context).catch(refused));
  }

  /**
   * Answers with Apollo Server's own execution, so that its plugins see the request, every stage, every field and the
   * response, and may change it. Apollo Server has no subscriptions: plugins see their documents only.
   */
  async #answerWithPlugins(parameters: RequestParameters, context: GraphQLContext): Promise<Outcome> {
    const { variables = {}, operationName } = parameters;
    const begun: { end?: End; admission?: Promise<unknown> } = {};
    const admit = async (document: DocumentNode, name: string | undefined, own: GraphQLContext) => {
      const operation = this.documents.operation(document, name);
      begun.end = this.#begin(operation, context);
      begun.admission = this.#checkAndCharge(operation, variables, own);
      return begun.admission;
    };
    const passed = await this.documents.pass(parameters, context, admit).catch(refused);
    // Another plugin may have rejected the operation meanwhile.
    await begun.admission?.catch(() => undefined);
    const end = begun.end ?? ((outcome: Outcome) => withoutOperation(outcome, parameters, context));
    if (!('response' in passed)) return end(passed);
    const { document, operation, errors: failures, failedAt, response } = passed;
    // Apollo Server's error for a GET that only a query may use is not the service's.
    const isOtherGet = context.request.method === 'GET' && !context.accepted.stream;
    if (document && operation && !begun.end && (!failures || isOtherGet)) {
      return this.#perform(this.documents.operation(document, operationName), parameters, context);
    }
    const { status, headers } = response.http;
    const result = response.body.kind === 'single' ? response.body.singleResult : {};
    return end({ ...result, failures, failedAt, status, headers });
  }

  /** Tells observers of an operation. */
  #begin(operation: Operation, { request, call }: GraphQLContext): End {
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
    if (operation.type !== 'subscription') return outcomeOf(await this.#execute(operation, variables, context));
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
    if (request.headers[idempotencyKey] !== undefined) assertRepeatable(schema, operation);
    const estimate = operation.estimate(variables);
    if (request.meter && (estimate.fixed > 0 || estimate.isNested)) await charge(operation, estimate, context);
    if (request.caller) {
      for (const [field, removal] of operation.deprecated) usage.called(request.caller, field, removal);
    }
    context.operation = operation;
    return estimate;
  }

  /**
   * Executes with graphql-jit. It compiles an operation at its second use, because compiling costs more than one use
   * saves, and an attacker could trigger it for free. graphql-js executes operations that graphql-jit cannot compile or
   * rejects before execution.
   */
  async #execute(
    operation: Operation,
    variables: Record<string, unknown>,
    contextValue: GraphQLContext,
  ): Promise<ExecutionResult> {
    const { schema, jit, introspection } = this.options;
    operation.uses += 1;
    if (operation.uses === 2 && jit && isSuitable(operation)) compile(schema, operation);
    const result = await operation.compiled?.(undefined, contextValue, variables);
    if (result && result.data !== undefined) {
      return result.errors ? { data: result.data, errors: result.errors.map(asGraphQLError) } : result;
    }
    // Without data, graphql-jit has rejected the variables. graphql-js accepts more of them (defaults of non-null input
    // fields, int64 as bigint), and its error messages are the standard.
    return execute({
      schema,
      document: operation.document,
      operationName: operation.name,
      contextValue,
      variableValues: variables,
      options: executionOptions,
      hideSuggestions: !introspection,
    });
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

function compile(schema: GraphQLSchema, operation: Operation): void {
  const compiled = compileQuery(schema, operation.document, operation.name, { disablingCapturingStackErrors: true });
  if (isCompiledQuery(compiled)) operation.compiled = compiled.query;
}

/**
 * True when graphql-jit returns the same as graphql-js (`test/deep/graphql/compiled.test.ts` compares them).
 *
 * - Where conditions meet fragments, it returns wrong data: a fragment counts as visited after its first spread, even a
 *   conditional one, and a field in a fragment loses the condition of its parent
 *   (https://github.com/zalando-incubator/graphql-jit/issues/111). Executable documents have no other directives.
 * - It assigns to aliases: an alias `__proto__` would not become a member.
 * - Introspection blocks the process ten times as long when it is compiled.
 * - From a variable inside an input object it accepts null, even for a field that has a default and cannot be null
 *   (https://github.com/zalando-incubator/graphql-jit/issues/230).
 * - It runs the mutations after a failed one, although the response says that there is no data.
 *
 * A document with several operations is interpreted, because the number of its compiled functions would be unbounded:
 * two kilobytes can contain a hundred operations.
 */
export function isSuitable({ document, type, node, hasDirectives }: Operation): boolean {
  if (hasDirectives || /__proto__|__(?:schema|type)\b/.test(document.loc?.source.body ?? '')) return false;
  if (document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length > 1) return false;
  if (type === 'mutation' && !isSingleField(node)) return false;
  let isPlain = true;
  visit(document, {
    ObjectField({ value }) {
      if (value.kind !== Kind.VARIABLE) return undefined;
      isPlain = false;
      return BREAK;
    },
  });
  return isPlain;
}

/**
 * graphql-jit's errors lack parts of graphql-js's, for example `extensions` and `toJSON`
 * (https://github.com/zalando-incubator/graphql-jit/issues/234).
 */
function asGraphQLError({ message, path, locations, originalError }: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), { locations });
}
