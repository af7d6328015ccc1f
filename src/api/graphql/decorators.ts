import 'reflect-metadata';
import type { GraphQLSchema } from 'graphql';
import { ArgsType, Extensions, Field, Subscription } from 'type-graphql';
import { lastEventIdOf } from '../subscriptions/subscriptions.ts';
import type { GraphQLContext } from './context.ts';
import { ID } from './types.ts';

// Decorators of resolver methods: a mutation accepts an idempotency key, a
// field is a live list.

/** A mutation that accepts `Idempotency-Key` for its creations. */
export function Idempotent(): MethodDecorator {
  return Extensions({ isIdempotent: true });
}

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
 * A field of `Subscription` whose events are the items of a list. The method
 * returns what `LiveList.subscribe` returns; `makeLive` makes it the field's
 * `subscribe`, because type-graphql's own has no access to the resolver's
 * instance.
 */
export function Live(
  type: () => object,
  options: { description: string },
): MethodDecorator {
  return Subscription(type as never, { ...options, topics: 'never used' });
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

/**
 * What type-graphql's decorators have declared: it exports no function to read
 * that.
 */
export function declared(kind: string): Array<Record<string, unknown>> {
  const storage = globalThis as unknown as {
    TypeGraphQLMetadataStorage: Record<string, ReturnType<typeof declared>>;
  };
  return storage.TypeGraphQLMetadataStorage[kind] ?? [];
}
