import {
  costOf,
  type Estimate,
  type Values,
} from '@animal-store/graphql-limits/cost';
import {
  coerceInputValue,
  type DocumentNode,
  defaultFieldResolver,
  executeSync,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OperationTypeNode,
  typeFromAST,
} from 'graphql';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import {
  claimOf,
  idempotencyHeader,
  notIdempotent,
} from '../../access/idempotency/idempotency-key.ts';
import type { Claim, Meter } from '../../call.ts';
import { badInput, orError, StoreError } from '../../errors.ts';
import type { OperationObserver } from '../../runtime/observers.ts';
import { forbidden, hasScope } from '../../scopes.ts';
import { mostFor } from '../../validation/page.ts';
import { bytesOf } from '../http/bodies.ts';
import { offerTrial } from '../http/negotiation.ts';
import { type Outcome, outcomeOf, refused } from './answer.ts';
import type { GraphQLContext, RequestParameters } from './context.ts';
import {
  type Apollo,
  type DocumentOptions,
  documentCache,
  Operation,
} from './document.ts';
import { scopeOf } from './scopes.ts';

// The steps of a request, from its parameters to its outcome, and what each of
// its root fields needs before it runs.

export interface PipelineOptions extends DocumentOptions {
  usage: DeprecationUsage;
  observers: readonly OperationObserver[];
}

/**
 * Bytes of its answer that are reserved per unit before a mutation runs. It is
 * an estimate: a unit may bring 60 kB.
 */
const bytesPerUnit = 12_288;

/** Answers operations: found, admitted, executed, formatted. */
export class Pipeline {
  /**
   * The documents of accepted texts, because hashing a text and running Apollo's
   * hooks cost as much as a small operation.
   */
  readonly #accepted = documentCache();
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(
    private readonly apollo: Apollo,
    readonly options: PipelineOptions,
  ) {}

  async answer(
    parameters: RequestParameters,
    context: GraphQLContext,
  ): Promise<Outcome> {
    const { operationName, variables } = parameters;
    const found = this.#known(parameters) ?? (await this.#find(parameters));
    if (!('kind' in found)) return found;
    const operation = orError(() => this.operationIn(found, operationName));
    if (operation instanceof Error) return refused(operation);
    // To return the promise itself would take three turns more.
    return await this.perform(operation, variables, context);
  }

  /** The document of a text that was accepted before. */
  #known({ query = '', extensions }: RequestParameters) {
    if (extensions?.persistedQuery !== undefined) return undefined;
    return this.#accepted.get(query);
  }

  /** @returns the document, or the errors because of which there is none */
  async #find(parameters: RequestParameters) {
    const { found, outcome } = await this.apollo.run(parameters, { run: {} });
    const { source, document } = found ?? {};
    if (outcome.failures || !source || !document) return outcome;
    const accepted = this.#accepted.get(source) ?? document;
    this.#accepted.set(source, accepted);
    return accepted;
  }

  /** @throws GraphQLError when the document has no such operation */
  operationIn(document: DocumentNode, operationName?: string) {
    const { options } = this;
    const node = getOperationAST(document, operationName);
    if (!node) {
      const { schema } = options;
      throw executeSync({ schema, document, operationName }).errors?.[0];
    }
    const operation =
      this.#operations.get(node) ?? new Operation(document, node, options);
    this.#operations.set(node, operation);
    return operation;
  }

  async perform(
    operation: Operation,
    variables: Values = {},
    context: GraphQLContext,
  ) {
    this.begin(operation, context);
    let outcome: Outcome;
    try {
      await this.admit(operation, variables, context);
      outcome = outcomeOf(await operation.execute(variables, context));
    } catch (error) {
      outcome = refused(error as Error);
    }
    return this.end(operation, context, outcome);
  }

  /** Tells observers of an operation. */
  begin(operation: Operation, { call }: GraphQLContext) {
    call.operation = operation;
    call.isWrite = operation.type === 'mutation';
    for (const observer of this.options.observers)
      observer.began?.(operation, call);
  }

  /**
   * Admits an operation to its execution: checks its method, scopes, key, cost
   * and room, and charges it.
   *
   * @throws StoreError or GraphQLError
   */
  async admit(
    operation: Operation,
    variables: Values,
    context: GraphQLContext,
  ) {
    const { schema, usage } = this.options;
    const { type, uses } = operation;
    const { request, reply, call } = context;
    const { caller, meter } = call;

    assertReadable(operation, variables);
    const isLarge = request.body && bytesOf(request) > 10_000;
    if (isLarge) assertValid(schema, operation, variables);
    assertMethod(operation, context);
    const missing = uses.scopes.find((scope) => !hasScope(caller, scope));
    if (missing) throw forbidden(missing, caller);
    const isMutation = type === 'mutation';
    const hasKey = request.headers[idempotencyHeader] !== undefined;
    if (isMutation && hasKey) assertIdempotent(schema, operation);
    const estimate = operation.estimate(variables);
    const room = estimate.cost * bytesPerUnit;
    if (isMutation) request.server.unread.hold(request, reply, room);
    // A subscription is charged per event.
    if (meter && type !== 'subscription') await chargeRest(meter, estimate);
    if (!caller) return;
    for (const [field, removal] of uses.deprecated)
      usage.called(caller, field, removal);
  }

  /** Ends its observation. A stream continues, and reports its own end. */
  end(operation: Operation, { call }: GraphQLContext, outcome: Outcome) {
    if (outcome.stream) return outcome;
    for (const observer of this.options.observers)
      observer.ended(operation, call, outcome.errors);
    return outcome;
  }
}

/**
 * Rejects GET for mutations, because a link must not change data. Subscriptions
 * may use GET if the client accepts events.
 */
function assertMethod(
  { type }: Operation,
  { request, accepted }: GraphQLContext,
) {
  const isSubscription = type === 'subscription';
  if (type === 'query' || (isSubscription && accepted.stream)) return;
  if (request.method !== 'POST')
    throw new StoreError('METHOD_NOT_ALLOWED', onlyQueries);
  if (isSubscription) throw new StoreError('NOT_ACCEPTABLE', noStream);
}

const onlyQueries =
  'By GET only queries are answered: send a mutation by POST, and a subscription with an `Accept` that names a stream.';

const noStream =
  'A subscription is a stream: send `Accept: text/event-stream`, or `multipart/mixed;subscriptionSpec=1.0`.';

/**
 * Rejects a key for mutations that would ignore it, because the client relies
 * on it.
 *
 * @throws GraphQLError BAD_USER_INPUT
 */
function assertIdempotent(
  schema: GraphQLSchema,
  { fieldNames, node }: Operation,
) {
  const fields = schema.getMutationType()?.getFields() ?? {};
  const ignoresKey = fieldNames.some(
    (name) => fields[name] && !fields[name].extensions.isIdempotent,
  );
  if (!ignoresKey) return;
  const originalError = notIdempotent();
  throw new GraphQLError(originalError.message, {
    nodes: node,
    originalError,
  });
}

/**
 * Charges work that no root field charges: introspection, leaf fields that are
 * not free, and operations with costly nested fields, whose unused units are
 * returned at the end.
 *
 * @throws StoreError TOO_MANY_REQUESTS
 */
async function chargeRest(
  meter: Meter,
  { cost, surcharge, rootFields, isNested }: Estimate,
) {
  // A reservation that is released charges one root field (`QuotaMeter`: 1, and
  // each item that was read).
  let charged = surcharge;
  if (isNested) charged += rootFields - 1;
  if (charged > 0) await meter.charge(charged);
  if (isNested) await meter.reserve(cost - charged);
}

/**
 * Requires the scope of each mutation, and charges root fields their
 * maximum cost before they run, when a quota is configured. Operations with
 * costly nested fields are charged as a whole.
 */
export function guardRoots(schema: GraphQLSchema) {
  for (const operation of Object.values(OperationTypeNode)) {
    const fields = schema.getRootType(operation)?.getFields() ?? {};
    for (const field of Object.values(fields))
      guardRoot(field, operation === OperationTypeNode.MUTATION);
  }
}

function guardRoot(
  field: GraphQLField<unknown, GraphQLContext>,
  isMutation: boolean,
) {
  const { resolve = defaultFieldResolver } = field;
  const cost = costOf(field, true, mostFor);
  const scope = scopeOf(field);
  field.resolve = (root, args, context, info) => {
    const { call } = context;
    const { caller, meter } = call;
    if (isMutation && !hasScope(caller, scope))
      return Promise.reject(forbidden(scope, caller));
    if (!isMutation && !meter) return resolve(root, args, context, info);
    const run = async () => {
      // Mutations run one after another.
      if (isMutation) {
        call.claim = claimOfField(context, info);
        offerTrial(context.request, context.reply);
      }
      return resolve(root, args, context, info);
    };
    if (!meter) return run();
    const mayCost = cost({ args, childComplexity: 0 });
    return meter.run(mayCost, run);
  };
}

/**
 * The claim of a root field; undefined without an `Idempotency-Key`. Several
 * fields of one name have separate claims. A single field has the same claim as
 * a REST request.
 */
function claimOfField(
  { call, request }: GraphQLContext,
  { fieldName, path }: GraphQLResolveInfo,
): Claim | undefined {
  const names = [...(call.operation?.fields?.values() ?? [])];
  const same = names.filter((name) => name === fieldName);
  const isOneOfSeveral = same.length > 1;
  return claimOf(request, fieldName, isOneOfSeveral ? `${path.key}` : '');
}

/** @throws StoreError because graphql-js drops the value of such a variable */
function assertReadable({ node }: Operation, variables: Values) {
  const name = '__proto__';
  const { variableDefinitions = [] } = node;
  const isDeclared = variableDefinitions.some(
    ({ variable }) => variable.name.value === name,
  );
  if (isDeclared && Object.hasOwn(variables, name))
    throw badInput(`A variable must have another name than ${name}.`);
}

/**
 * Validates large variables first, because graphql-js would print the whole
 * value for each mistake, and compare long names with all that are known.
 *
 * @throws GraphQLError for the first mistake
 */
function assertValid(
  schema: GraphQLSchema,
  { node }: Operation,
  variables: Values,
) {
  for (const nodes of node.variableDefinitions ?? []) {
    const name = nodes.variable.name.value;
    if (!Object.hasOwn(variables, name)) continue;
    const type = typeFromAST(schema, nodes.type) as GraphQLInputType;
    const refuse: OnError = (path, _value, { message }) => {
      const place = [name, ...path].join('.');
      const wrong = `Variable "$${place}" got an invalid value`;
      throw new GraphQLError(`${wrong}; ${message}`, { nodes });
    };
    coerceInputValue(variables[name], type, refuse, true);
  }
}

type OnError = Parameters<typeof coerceInputValue>[2];
