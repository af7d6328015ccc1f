import 'reflect-metadata';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import { ArgsType, createParameterDecorator, Extensions, Field, type PubSub, Subscription } from 'type-graphql';
import { claimOf, notRepeatable } from '../../access/idempotency/idempotency-key.ts';
import { StoreError } from '../../errors.ts';
import { int64, int64FromText } from '../../storage/input/int64.ts';
import type { IdempotencyClaim } from '../../storage/records/insertions.ts';
import type { Operation } from './documents.ts';
import type { GraphQLContext } from './request.ts';
import { ID } from './types.ts';

export type { IdempotencyClaim };

/** What the methods of resolvers declare: that a mutation takes a key, that a field is a live list. */

interface RepeatableField {
  isRepeatable?: boolean;
}

/**
 * The parameter of a mutation that takes `Idempotency-Key`: the client's name for what the field does, undefined when
 * it has none. The resolver passes it to the service.
 */
export function Repeatable(): ParameterDecorator {
  const inject = createParameterDecorator<GraphQLContext>(
    ({ context, info: { fieldName, path } }): IdempotencyClaim | undefined => {
      // Of several fields of this name each has its own; one alone is the same as a REST request.
      const names = [...(context.operation?.fields.values() ?? [])];
      const isOneOfSeveral = names.filter((name) => name === fieldName).length > 1;
      return claimOf(context.request, fieldName, isOneOfSeveral ? `${path.key}` : '');
    },
  );
  return (prototype, name, index) => {
    Extensions({ isRepeatable: true } satisfies RepeatableField)(prototype, name as string);
    inject(prototype, name as string, index);
  };
}

/**
 * Refuses a key for mutations that would ignore it: a client that sends one relies on it.
 *
 * @throws GraphQLError BAD_USER_INPUT
 */
export function assertRepeatable(schema: GraphQLSchema, { type, fieldNames, node }: Operation): void {
  const fields = type === 'mutation' ? schema.getMutationType()?.getFields() : undefined;
  const ignoresKey = (name: string) => fields?.[name] && !(fields[name].extensions as RepeatableField).isRepeatable;
  if (!fieldNames.some(ignoresKey)) return;
  const originalError = notRepeatable();
  throw new GraphQLError(originalError.message, { nodes: node, originalError });
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
 * A field of `Subscription` whose events are the items of a list. The method returns what `LiveList.follow` returns;
 * `makeLive` makes it the field's `subscribe`, because type-graphql's own has no access to the resolver's instance.
 */
export function Live(type: () => object, options: { description: string }): MethodDecorator {
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

/**
 * The last event that the client has seen: it wants those after it (WHATWG HTML, section 9.2.4).
 *
 * @throws StoreError BAD_USER_INPUT
 */
function lastEventIdOf({ request }: GraphQLContext): string | undefined {
  const id = request.headers['last-event-id'] as string | undefined;
  if (id === undefined || int64FromText(id) !== undefined) return id;
  throw new StoreError('BAD_USER_INPUT', `Last-Event-ID must be an integer between ${int64.min} and ${int64.max}.`);
}

function neverCalled(): never {
  throw new Error('The schema was not made live.');
}

/** type-graphql requires one. Nothing is published: followers read the list. */
export const noPubSub: PubSub = { publish: neverCalled, subscribe: neverCalled };
