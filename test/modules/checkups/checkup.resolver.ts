import {
  Arg,
  Args,
  Ctx,
  FieldResolver,
  Int,
  Mutation,
  Query,
  Resolver,
  Root,
} from 'type-graphql';
import type { GraphQLContext } from '#engine/api/graphql/context.js';
import { ID, Idempotent, Live } from '#engine/api/graphql/types.js';
import { orNotFound } from '#engine/api/rest/responses.js';
import { int64FromText } from '#engine/validation/int64.js';
import { removalSchema } from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import type { Pet } from '../../../src/pets/pet.schemas.ts';
import type { PetService } from '../../../src/pets/pet.service.ts';
import { PetType } from '../../../src/pets/pet.types.ts';
import type { Checkups, LiveCheckups } from './checkup.entity.ts';
import {
  type Checkup,
  checkupChangeSchema,
  checkupQuerySchema,
  newCheckupSchema,
} from './checkup.schemas.ts';
import {
  CheckupArguments,
  CheckupChange,
  CheckupOfPetArguments,
  CheckupType,
  NewCheckupInput,
} from './checkup.types.ts';

const queryOf = validator(checkupQuerySchema, { isLenient: true });
const changeOf = validator(checkupChangeSchema, { isLenient: true });
const removalOf = validator(removalSchema, { isLenient: true });
const newCheckupOf = validator(newCheckupSchema, { isLenient: true });

@Resolver(() => CheckupType)
export class CheckupResolver {
  constructor(
    private readonly records: Checkups,
    private readonly live: LiveCheckups,
    private readonly pets: PetService,
  ) {}

  @Query(() => [CheckupType], {
    description: 'Lists checkups.',
  })
  async checkups(
    @Args(() => CheckupArguments.list) args: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Checkup[]> {
    return (await this.records.list(queryOf(args), call)).items;
  }

  @Query(() => CheckupType, {
    nullable: true,
    description: 'Fetches one checkup.',
  })
  checkup(
    @Arg('id', () => ID) id: string,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Checkup | null> {
    return this.records.find(int64FromText(id), call);
  }

  @Idempotent()
  @Mutation(() => CheckupType, { description: 'Adds a checkup.' })
  async createCheckup(
    @Arg('input', () => NewCheckupInput) input: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Checkup> {
    return this.records.create(newCheckupOf(input), call);
  }

  @Mutation(() => CheckupType, {
    description: 'Changes a checkup that has this version.',
  })
  async changeCheckup(
    @Arg('id', () => ID) id: string,
    @Arg('change', () => CheckupChange) change: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Checkup> {
    return orNotFound(
      await this.records.change(int64FromText(id), changeOf(change), call),
      'checkup',
      id,
    );
  }

  @Mutation(() => Boolean, {
    description:
      'Removes a checkup; with a version only if it has this version.',
  })
  async removeCheckup(
    @Arg('id', () => ID) id: string,
    @Arg('version', () => Int, { nullable: true }) version:
      | number
      | null
      | undefined,
    @Ctx() { call }: GraphQLContext,
  ): Promise<boolean> {
    return orNotFound(
      await this.records.remove(
        int64FromText(id),
        removalOf({ version }),
        call,
      ),
      'checkup',
      id,
    );
  }

  @Live(() => CheckupType, {
    description: 'Checkups as they are added, by ascending id.',
  })
  checkupAdded(@Args(() => CheckupArguments.live) args: object) {
    return this.live.subscribe(queryOf(args));
  }

  @FieldResolver(() => PetType, { nullable: true, description: 'The animal.' })
  pet(
    @Root() { petId }: Checkup,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Pet | null> {
    return this.pets.find(petId, call);
  }
}

@Resolver(() => PetType)
export class CheckupsOfPetResolver {
  constructor(private readonly records: Checkups) {}

  @FieldResolver(() => [CheckupType], {
    description: 'Its checkups.',
  })
  async checkups(
    @Root() { id }: Pet,
    @Args(() => CheckupOfPetArguments.nested) args: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Checkup[]> {
    return (await this.records.list({ ...queryOf(args), petId: id }, call))
      .items;
  }
}
