import 'reflect-metadata';
import type { GraphQLSchema } from 'graphql';
import { ArgsType, Field, type PubSub, Subscription } from 'type-graphql';
import { StoreError } from '../../errors.ts';
import { int64, int64FromText } from '../../storage/input/int64.ts';
import type { GraphQLContext } from '../graphql/request.ts';
import { ID } from '../graphql/types.ts';

/** The arguments of every live list. */
@ArgsType()
export class FollowArgs {
  @Field(() => ID, {
    nullable: true,
    description:
      'Everything after this one, and then what is added: the last id already seen. Only what is added from now on when absent. `Last-Event-ID` takes its place.',
  })
  readonly after?: string | null;
}

/**
 * A field of `Subscription` whose events are the items of a list. The method returns what `LiveList.follow` returns;
 * `makeLive` makes it the field's `subscribe`, because type-graphql's own has no access to the resolver's instance.
 */
export function Live(
  type: () => object,
  options: { description: string; deprecationReason?: string },
): MethodDecorator {
  return Subscription(type as never, { ...options, subscribe: neverCalled });
}

/** Makes the methods of live fields subscribe, from `Last-Event-ID` if there is one. An item is its field's value. */
export function makeLive(schema: GraphQLSchema): void {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const { resolve } = field;
    field.subscribe = (root, args, context: GraphQLContext, info) =>
      resolve?.(root, { ...args, after: lastEventIdOf(context) ?? args.after }, context, info);
    field.resolve = (item) => item;
  }
}

/** @throws StoreError BAD_USER_INPUT */
function lastEventIdOf({ events }: GraphQLContext): string | undefined {
  const id = events?.lastEventId;
  if (id === undefined || int64FromText(id) !== undefined) return id;
  throw new StoreError('BAD_USER_INPUT', `Last-Event-ID must be an integer between ${int64.min} and ${int64.max}.`);
}

function neverCalled(): never {
  throw new Error('The schema was not made live.');
}

/** type-graphql requires one. Nothing is published: followers read the list. */
export const noPubSub: PubSub = { publish: neverCalled, subscribe: neverCalled };
