import { costOf } from '@animal-store/graphql-limits/cost';
import {
  defaultFieldResolver,
  type GraphQLResolveInfo,
  type GraphQLSchema,
} from 'graphql';
import { claimOf } from '../../access/idempotency/idempotency-key.ts';
import type { Claim } from '../../call.ts';
import { forbidden, hasScope } from '../../scopes.ts';
import { mostItems } from '../../validation/page.ts';
import { lastEventIdOf } from '../subscriptions/subscriptions.ts';
import type { GraphQLContext } from './context.ts';
import { scopeOf } from './scopes.ts';

/**
 * Requires the scope of each mutation, and charges root fields their
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
    const isMutation = type === mutations;
    for (const field of Object.values(type?.getFields() ?? {})) {
      const { resolve = defaultFieldResolver } = field;
      const cost = costOf(field, true, mostItems);
      const scope = scopeOf(field);
      field.resolve = (root, args, context: GraphQLContext, info) => {
        const { call } = context;
        const { caller, meter } = call;
        if (isMutation && !hasScope(caller, scope))
          return Promise.reject(forbidden(scope, caller));
        if (!isMutation && !meter) return resolve(root, args, context, info);
        const run = async () => {
          // Mutations run one after another.
          if (isMutation) call.claim = claimOfField(context, info);
          return resolve(root, args, context, info);
        };
        if (!meter) return run();
        return meter.run(cost({ args, childComplexity: 0 }), run);
      };
    }
  }
}

/**
 * The claim of a root field; undefined without an `Idempotency-Key`. Several
 * fields of one name have separate claims. A single field has the same claim as
 * a REST request.
 */
function claimOfField(
  { operation, request }: GraphQLContext,
  { fieldName, path }: GraphQLResolveInfo,
): Claim | undefined {
  const names = [...(operation?.fields.values() ?? [])];
  const isOneOfSeveral = names.filter((name) => name === fieldName).length > 1;
  return claimOf(request, fieldName, isOneOfSeveral ? `${path.key}` : '');
}

/**
 * Sets `subscribe` of live fields, which starts after `Last-Event-ID`, if
 * present. Each item is a value of its field.
 */
export function makeLive(schema: GraphQLSchema): void {
  for (const field of Object.values(
    schema.getSubscriptionType()?.getFields() ?? {},
  )) {
    const { resolve } = field;
    field.subscribe = (root, args, context: GraphQLContext, info) =>
      resolve?.(
        root,
        { ...args, after: lastEventIdOf(context.request) ?? args.after },
        context,
        info,
      );
    field.resolve = (item) => item;
  }
}
