import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import type { GraphQLContext } from './context.ts';
import {
  Apollo,
  type DocumentOptions,
  Documents,
  Operation,
} from './document.ts';
import { subscribe } from './execution.ts';
import { logErrors, type Outcome, outcomeOf, refused } from './outcome.ts';
import { charge } from './price.ts';
import type { RequestParameters } from './request.ts';

export interface PipelineOptions extends DocumentOptions {
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
}

/** The steps of a request, from its parameters to its outcome. */
export class Pipeline {
  private constructor(
    readonly documents: Documents,
    readonly options: PipelineOptions,
  ) {}

  static async open(options: PipelineOptions): Promise<Pipeline> {
    const apollo = new Apollo(options);
    await apollo.start();
    return new Pipeline(new Documents(apollo, options), options);
  }

  async answer(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const found =
      this.documents.known(parameters) ??
      (await this.documents.find(parameters));
    if (found instanceof Operation)
      return this.perform(found, parameters.variables, context);
    return this.endWithout(found, parameters, context);
  }

  async perform(
    operation: Operation,
    variables: Record<string, unknown> = {},
    context: GraphQLContext,
  ): Promise<Outcome> {
    this.begin(operation, context);
    let outcome: Outcome;
    try {
      const estimate = await charge(
        operation,
        variables,
        context,
        this.options,
      );
      const result =
        operation.type === 'subscription'
          ? subscribe(operation, variables, context, estimate, this.options)
          : operation.execute(variables, context);
      outcome = outcomeOf(await result);
    } catch (error) {
      outcome = refused(error as Error);
    }
    return this.end(operation, context, outcome);
  }

  /** Tells observers of an operation. */
  begin(operation: Operation, context: GraphQLContext): void {
    const { name, fieldNames } = operation;
    const { call } = context;
    context.fields = operation.fields;
    call.operation = { name, fields: fieldNames };
    call.isWrite = operation.type === 'mutation';
    for (const observer of this.options.observers)
      observer.began?.(operation, call);
  }

  /** Logs the failures of an operation and ends its observation. */
  end(
    operation: Operation,
    { request, call }: GraphQLContext,
    outcome: Outcome,
  ): Outcome {
    const { failures, errors, stream } = outcome;
    if (failures) logErrors(failures, request);
    // Another mutation may have run. An error without a path means that none
    // has.
    if (operation.isSeries)
      outcome.isRetrySafe = !errors?.some(({ path }) => path);
    // A stream continues, and reports its own end.
    if (stream) return outcome;
    for (const observer of this.options.observers)
      observer.ended(operation, call, errors);
    return outcome;
  }

  /**
   * Ends a request without an executable operation: only the client's name for
   * it is known.
   */
  endWithout(
    outcome: Outcome,
    { operationName }: RequestParameters,
    { call, request }: GraphQLContext,
  ): Outcome {
    call.operation = { name: operationName, fields: undefined };
    if (outcome.failures) logErrors(outcome.failures, request);
    return outcome;
  }
}
