import { Arg, Args, Authorized, Mutation, Query, Resolver } from 'type-graphql';
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
  async pets(@Args(() => PetsArgs) args: PetsArgs): Promise<readonly Pet[]> {
    const page = await this.service.list({ ...args, after: integerFromText(args.after) });
    return page.pets;
  }

  @Query(() => PetConnection, { description: 'The same list as a Relay connection.' })
  async petsConnection(
    @Args(() => PetsConnectionArgs) { first, after, status }: PetsConnectionArgs,
  ): Promise<PetConnection> {
    return toConnection(await this.service.list({ status, limit: first, after: integerFromText(after) }, 'first'));
  }

  @Query(() => PetType, {
    nullable: true,
    description: 'Fetches one animal; null when there is none.',
    deprecationReason,
  })
  async pet(@Arg('id', () => ID, { description: 'The id of the animal.' }) id: string): Promise<Pet | null> {
    return this.service.find(integerFromText(id));
  }

  @Authorized('write')
  @Mutation(() => PetType, { description: 'Adds an animal. It is stored durably when it is answered.' })
  async createPet(@Arg('input', () => NewPetInput, { description: 'The animal.' }) input: NewPetInput): Promise<Pet> {
    return this.service.create({ ...input, categoryId: integerFromText(input.categoryId) });
  }
}
