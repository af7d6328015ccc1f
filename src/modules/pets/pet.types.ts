import { Field, InputType, ObjectType, registerEnumType } from 'type-graphql';
import { type Deprecation, dayOf } from '../../access/deprecations/deprecation.ts';
import { connectionOf, ID } from '../../api/graphql/types.ts';
import type { Int64 } from '../../validation/int64.ts';
import { PetStatus } from './pet.entity.ts';

/**
 * Fetching one pet by id, in REST and GraphQL. The specification sets the removal, its version 1.0.0 the deprecation.
 */
export const getPetDeprecation: Deprecation = {
  since: new Date('2026-11-20T00:00:00Z'),
  removal: new Date('2030-12-05T00:00:00Z'),
  replacement: '`GET /pets` with the `status` filter',
};

export const getPetRemovalDay = dayOf(getPetDeprecation.removal);

registerEnumType(PetStatus, {
  name: 'PetStatus',
  description: 'Availability of an animal.',
  valuesConfig: {
    available: { description: 'The animal is available.' },
    pending: { description: 'The animal is pending.' },
    sold: { description: 'The animal is sold.' },
  },
});

@ObjectType('Pet', { description: 'An animal of the catalogue.', simpleResolvers: true })
export class PetType {
  @Field(() => ID, {
    description: 'Unique identifier, assigned by the service on creation: an int64 in decimal digits.',
  })
  readonly id!: Int64;

  @Field(() => String, { description: "The animal's name." })
  readonly name!: string;

  @Field(() => ID, { description: 'Identifier of the category the animal belongs to: an int64 in decimal digits.' })
  readonly categoryId!: Int64;

  @Field(() => PetStatus, { description: 'Availability of the animal.' })
  readonly status!: PetStatus;
}

export const PetConnection = connectionOf(PetType, 'Pet', 'animals');

@InputType('NewPet', { description: 'An animal to be added.' })
export class NewPetInput {
  @Field(() => String, {
    description: "The animal's name. Any text without U+0000 and lone surrogates, of at most 1,000 characters.",
  })
  readonly name!: string;

  @Field(() => ID, { description: 'Identifier of its category: an int64, as decimal digits or as an integer.' })
  readonly categoryId!: string;

  @Field(() => PetStatus, { defaultValue: PetStatus.available, description: 'Availability of the animal.' })
  readonly status!: PetStatus;
}
