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

/** Where a live list begins. @throws StoreError BAD_USER_INPUT */
export function positionOf({ after }: FollowArgs, { events }: GraphQLContext): string | null | undefined {
  const { lastEventId } = events ?? {};
  if (lastEventId === undefined || int64FromText(lastEventId) !== undefined) return lastEventId ?? after;
  throw new StoreError('BAD_USER_INPUT', `Last-Event-ID must be an integer between ${int64.min} and ${int64.max}.`);
}

/**
 * A field of `Subscription`: the method returns a `Follower`, and each of its items is an event.
 *
 * type-graphql's own `subscribe` is a function without the resolver's instance, so `makeLive` puts the method there.
 */
export function Live(
  type: () => object,
  options: { description: string; deprecationReason?: string },
): MethodDecorator {
  return Subscription(type as never, { ...options, subscribe: neverCalled });
}

/** Makes the methods of live fields what subscribes; an item is the value of its field. */
export function makeLive(schema: GraphQLSchema): void {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    if (field.resolve) field.subscribe = field.resolve;
    field.resolve = (item) => item;
  }
}

function neverCalled(): never {
  throw new Error('The schema was not made live.');
}

/** type-graphql asks for one. Nothing is published: whoever follows a list reads it. */
export const noPubSub: PubSub = { publish: neverCalled, subscribe: neverCalled };
