import 'reflect-metadata';
import { Args, Ctx, FieldResolver, Int, Resolver, Root } from 'type-graphql';
import { Type } from 'typebox';
import type { GraphQLContext } from '#engine/api/graphql/context.js';
import { argumentsOf } from '#engine/api/graphql/members.js';
import type { Module } from '#engine/api/module.js';
import { validator } from '#engine/validation/validator.js';
import { type Pet, petQuerySchema } from '../../src/pets/pet.schemas.ts';
import { PetService } from '../../src/pets/pet.service.ts';
import { PetType } from '../../src/pets/pet.types.ts';
import { stock } from './database-access.ts';
import { fieldsForAll } from './field-resolvers.ts';
import { type Store, storeForAll } from './store.ts';

const PageArguments = argumentsOf(Type.Object({}));
const queryOf = validator(petQuerySchema, { isLenient: true });

@Resolver(() => PetType)
class FriendsResolver {
  constructor(private readonly service: PetService) {}

  @FieldResolver(() => [PetType], { description: 'Its friends.' })
  async friends(
    @Args(() => PageArguments.list) args: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Pet[]> {
    return (await this.service.list(queryOf(args), call)).items;
  }

  @FieldResolver(() => PetType, { nullable: true, description: 'Itself.' })
  friend(
    @Root() pet: Pet,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet | null> {
    return this.service.find(pet.id, call);
  }

  @FieldResolver(() => Int, { description: 'No Int.' })
  beyond(): number {
    return 2 ** 40;
  }
}

const relations: Module = {
  tag: { name: 'Relations', description: 'Pets and their friends.' },
  open: ({ database }) => ({
    resolvers: [new FriendsResolver(new PetService(database))],
  }),
};

/** Gives all tests of a file a store of five animals and their friends. */
export function relationsForAll(): Store {
  fieldsForAll({ Pet: ['friend', 'friends', 'beyond'] });
  const store = storeForAll({}, () => stock(store.database, 5), {
    more: [relations],
  });
  return store;
}
