import 'reflect-metadata';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import { ArgsType, createParameterDecorator, Extensions, Field, type PubSub, Subscription } from 'type-graphql';
import { claimOf, notIdempotent } from '../../access/idempotency/idempotency-key.ts';
import type { IdempotencyClaim } from '../../call-context.ts';
import { StoreError } from '../../errors.ts';
import { int64, int64FromText } from '../../validation/int64.ts';
import type { GraphQLContext, Operation } from './operation.ts';
import { ID } from './types.ts';

// Decorators of resolver methods: a mutation accepts an idempotency key, a field is a live list.

interface RepeatableField {
  isIdempotent?: boolean;
}

/**
 * The parameter of a mutation that accepts `Idempotency-Key`: the client's claim for this field, undefined without one.
 * The resolver passes it to the service.
 */
export function Idempotent(): ParameterDecorator {
  const inject = createParameterDecorator<GraphQLContext>(
    ({ context, info: { fieldName, path } }): IdempotencyClaim | undefined => {
      // Several fields of this name have separate claims. A single field has the same claim as a REST request.
      const names = [...(context.operation?.fields.values() ?? [])];
      const isOneOfSeveral = names.filter((name) => name === fieldName).length > 1;
      return claimOf(context.request, fieldName, isOneOfSeveral ? `${path.key}` : '');
    },
  );
  return (prototype, name, index) => {
    Extensions({ isIdempotent: true } satisfies RepeatableField)(prototype, name as string);
    inject(prototype, name as string, index);
  };
}

/**
 * Rejects a key for mutations that would ignore it, because the client relies on it.
 *
 * @throws GraphQLError BAD_USER_INPUT
 */
export function assertIdempotent(schema: GraphQLSchema, { type, fieldNames, node }: Operation): void {
  const fields = type === 'mutation' ? schema.getMutationType()?.getFields() : undefined;
  const ignoresKey = (name: string) => fields?.[name] && !(fields[name].extensions as RepeatableField).isIdempotent;
  if (!fieldNames.some(ignoresKey)) return;
  const originalError = notIdempotent();
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
 * A field of `Subscription` whose events are the items of a list. The method returns what `LiveList.subscribe` returns;
 * `makeLive` makes it the field's `subscribe`, because type-graphql's own has no access to the resolver's instance.
 */
export function Live(type: () => object, options: { description: string }): MethodDecorator {
  return Subscription(type as never, { ...options, subscribe: neverCalled });
}

/**
 * Sets `subscribe` of live fields, which starts after `Last-Event-ID`, if present. Each item is a value of its field.
 */
export function makeLive(schema: GraphQLSchema): void {
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    const { resolve } = field;
    field.subscribe = (root, args, context: GraphQLContext, info) =>
      resolve?.(root, { ...args, after: lastEventIdOf(context) ?? args.after }, context, info);
    field.resolve = (item) => item;
  }
}

/**
 * The id of the last event that the client has received (WHATWG HTML, section 9.2.4).
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

/** type-graphql requires one. It is never used, because followers read the list. */
export const noPubSub: PubSub = { publish: neverCalled, subscribe: neverCalled };
