import {
  connectionValidator,
  type DeprecatedField,
  type GraphQLContext,
  ID,
  Idempotent,
  int64FromText,
  Live,
  toConnection,
  validator,
} from '@animal-store/engine';
import {
  Arg,
  Args,
  Ctx,
  Extensions,
  Mutation,
  Query,
  Resolver,
} from 'type-graphql';
import { newPetSchema, type Pet, petQuerySchema } from './pet.schemas.ts';
import type { PetService } from './pet.service.ts';
import {
  getPetDeprecation,
  getPetRemovalDay,
  NewPetInput,
  PetArguments,
  PetConnection,
  PetType,
} from './pet.types.ts';

const deprecationReason = `Use \`pets\` with its \`status\` argument; \`pet\` will be removed on ${getPetRemovalDay}.`;

const queryOf = validator(petQuerySchema, { isLenient: true });
const newPetOf = validator(newPetSchema, { isLenient: true });
const queryOfConnection = connectionValidator(petQuerySchema);

@Resolver()
export class PetResolver {
  constructor(private readonly service: PetService) {}

  @Query(() => [PetType], {
    description:
      'Lists animals by ascending id, or newest first, optionally filtered by availability.',
  })
  async pets(
    @Args(() => PetArguments.list) args: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Pet[]> {
    return (await this.service.list(queryOf(args), call)).items;
  }

  @Query(() => PetConnection, {
    description: 'The same list as a Relay connection.',
  })
  async petsConnection(
    @Args(() => PetArguments.connection) args: object,
    @Ctx() { call }: GraphQLContext,
  ) {
    const query = queryOfConnection(args);
    return toConnection(await this.service.list(query, call), () =>
      this.service.count(query, call),
    );
  }

  @Extensions({ deprecation: getPetDeprecation } satisfies DeprecatedField)
  @Query(() => PetType, {
    nullable: true,
    description: 'Fetches one animal; null when there is none.',
    deprecationReason,
  })
  async pet(
    @Arg('id', () => ID, { description: 'The id of the animal.' }) id: string,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet | null> {
    return this.service.find(int64FromText(id), call);
  }

  @Idempotent()
  @Mutation(() => PetType, {
    description:
      'Adds an animal. It is stored durably when it is answered. The header Idempotency-Key makes it safe to send again.',
  })
  async createPet(
    @Arg('input', () => NewPetInput, { description: 'The animal.' })
    input: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet> {
    return this.service.create(newPetOf(input), call);
  }

  @Live(() => PetType, {
    description:
      'Animals as they are added, by ascending id: those after an id, then new ones.',
  })
  petAdded(@Args(() => PetArguments.live) args: object) {
    return this.service.added(queryOf(args));
  }
}
