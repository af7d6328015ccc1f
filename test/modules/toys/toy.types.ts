import { Field, GraphQLISODateTime, InputType, ObjectType, registerEnumType } from 'type-graphql';
import { connectionOf, ID } from '../../../src/api/graphql/types.ts';
import type { Int64 } from '../../../src/validation/int64.ts';
import { ToyKind } from './toy.schemas.ts';

/** Deprecates `getToy` and `Query.toy`. */
export const getToyDeprecation = {
  since: new Date('2026-11-21'),
  removal: new Date('2031-01-01'),
  replacement: '`GET /toys`',
};

registerEnumType(ToyKind, { name: 'ToyKind', description: 'What the toy is for.' });

@ObjectType('Toy', { description: 'A toy of the store.', simpleResolvers: true })
export class ToyType {
  @Field(() => ID) readonly id!: Int64;
  @Field(() => String) readonly name!: string;
  @Field(() => ToyKind) readonly kind!: ToyKind;
  @Field(() => String, { nullable: true }) readonly note!: string | null;
  @Field(() => GraphQLISODateTime) readonly madeAt!: Date;
}

export const ToyConnection = connectionOf(ToyType, 'Toy', 'toys');

@InputType('NewToy', { description: 'A toy to be added.' })
export class NewToyInput {
  @Field(() => String) readonly name!: string;
  @Field(() => ToyKind) readonly kind!: ToyKind;
  @Field(() => String, { nullable: true }) readonly note?: string | null;
  @Field(() => String) readonly madeAt!: string;
}
