import { Arg, Args, Authorized, Ctx, Mutation, Query, Resolver } from 'type-graphql';
import type { GraphQLContext } from '../graphql/context.ts';
import { ID } from '../graphql/id.ts';
import { integerFromText } from '../int64.ts';
import { PetConnection, PetsConnectionArgs, toConnection } from './pet.connection.ts';
import { getPetRemovalDay } from './pet.deprecation.ts';
import type { Pet } from './pet.entity.ts';
import type { PetService } from './pet.service.ts';
import { NewPetInput, PetsArgs, PetType } from './pet.types.ts';

const deprecationReason = `Use \`pets\` with its \`status\` argument; \`pet\` will be removed on ${getPetRemovalDay}.`;

/** The GraphQL face of the catalogue. */
@Resolver()
export class PetResolver {
  constructor(private readonly service: PetService) {}

  @Query(() => [PetType], { description: 'Lists animals by ascending id, optionally filtered by availability.' })
  async pets(@Args(() => PetsArgs) args: PetsArgs, @Ctx() { call }: GraphQLContext): Promise<readonly Pet[]> {
    const page = await this.service.list({ ...args, after: integerFromText(args.after) }, call);
    return page.pets;
  }

  @Query(() => PetConnection, { description: 'The same list as a Relay connection.' })
  async petsConnection(
    @Args(() => PetsConnectionArgs) { first, after, status }: PetsConnectionArgs,
    @Ctx() { call }: GraphQLContext,
  ): Promise<PetConnection> {
    const query = { status, limit: first, after: integerFromText(after) };
    return toConnection(await this.service.list(query, call, 'first'));
  }

  @Query(() => PetType, {
    nullable: true,
    description: 'Fetches one animal; null when there is none.',
    deprecationReason,
  })
  async pet(
    @Arg('id', () => ID, { description: 'The id of the animal.' }) id: string,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet | null> {
    return this.service.find(integerFromText(id), call);
  }

  @Authorized('write')
  @Mutation(() => PetType, { description: 'Adds an animal. It is stored durably when it is answered.' })
  async createPet(
    @Arg('input', () => NewPetInput, { description: 'The animal.' }) input: NewPetInput,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet> {
    return this.service.create({ ...input, categoryId: integerFromText(input.categoryId) }, call);
  }
}
