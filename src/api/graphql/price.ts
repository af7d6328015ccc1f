import type { Estimate } from '@animal-store/graphql-limits/cost';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import {
  idempotencyHeader,
  notIdempotent,
} from '../../access/idempotency/idempotency-key.ts';
import type { Meter } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import { forbidden, hasScope } from '../../scopes.ts';
import type { GraphQLContext } from './context.ts';
import type { Operation } from './document.ts';

/**
 * Room for the answer of a mutation, which is kept before it runs. A unit may
 * bring more: ten texts of 6 kB.
 */
const bytesPerUnit = 12_288;

/**
 * Checks and charges an operation before its execution. @throws StoreError or
 * GraphQLError
 */
export async function charge(
  operation: Operation,
  variables: Record<string, unknown>,
  context: GraphQLContext,
  { schema, usage }: { schema: GraphQLSchema; usage: DeprecationUsage },
): Promise<Estimate> {
  const { type, deprecated } = operation;
  const { request, reply, call } = context;
  const { caller, meter } = call;
  assertMethod(operation, context);
  const missing = operation.scopes.find((one) => !hasScope(caller, one));
  if (missing) throw forbidden(missing, caller);
  if (request.headers[idempotencyHeader] !== undefined)
    assertIdempotent(schema, operation);
  const estimate = operation.estimate(variables);
  if (type === 'mutation')
    request.server.unread.hold(request, reply, estimate.cost * bytesPerUnit);
  // A subscription is charged per event.
  if (meter && type !== 'subscription') await chargeRest(meter, estimate);
  if (caller) {
    for (const [field, removal] of deprecated)
      usage.called(caller, field, removal);
  }
  return estimate;
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
): Promise<void> {
  if (surcharge > 0) await meter.take(surcharge);
  if (!isNested) return;
  // Takes one unit for each root field but the last, and reserves the rest of
  // the cost.
  if (rootFields > 1) await meter.take(rootFields - 1);
  await meter.reserve(cost - surcharge - (rootFields - 1));
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
 * Rejects a key for mutations that would ignore it, because the client relies
 * on it.
 *
 * @throws GraphQLError BAD_USER_INPUT
 */
function assertIdempotent(
  schema: GraphQLSchema,
  { type, fieldNames, node }: Operation,
): void {
  if (type !== 'mutation') return;
  const fields = schema.getMutationType()?.getFields() ?? {};
  const ignoresKey = (name: string) =>
    fields[name] && !fields[name].extensions.isIdempotent;
  if (!fieldNames.some(ignoresKey)) return;
  const originalError = notIdempotent();
  throw new GraphQLError(originalError.message, { nodes: node, originalError });
}
