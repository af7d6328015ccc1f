import {
  Arg,
  Args,
  Ctx,
  Extensions,
  Mutation,
  Query,
  Resolver,
} from 'type-graphql';
import type { DeprecatedField } from '#engine/access/deprecations/deprecation.js';
import type { GraphQLContext } from '#engine/api/graphql/context.js';
import {
  connectionValidator,
  ID,
  Idempotent,
  Live,
  toConnection,
} from '#engine/api/graphql/types.js';
import { int64FromText } from '#engine/validation/int64.js';
import { validator } from '#engine/validation/validator.js';
import type { LiveToys, Toys } from './toy.entity.ts';
import { newToySchema, type Toy, toyQuerySchema } from './toy.schemas.ts';
import {
  getToyDeprecation,
  NewToyInput,
  ToyArguments,
  ToyConnection,
  ToyType,
} from './toy.types.ts';

const queryOf = validator(toyQuerySchema, { isLenient: true });
const newToyOf = validator(newToySchema, { isLenient: true });
const queryOfConnection = connectionValidator(toyQuerySchema);

/** The GraphQL fields of toys. */
@Resolver()
export class ToyResolver {
  constructor(
    private readonly records: Toys,
    private readonly live: LiveToys,
  ) {}

  @Query(() => [ToyType], { description: 'Lists toys by ascending id.' })
  async toys(
    @Args(() => ToyArguments.list) args: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<readonly Toy[]> {
    return (await this.records.list(queryOf(args), call)).items;
  }

  @Query(() => ToyConnection, {
    description: 'The same list as a Relay connection.',
  })
  async toysConnection(
    @Args(() => ToyArguments.connection) args: object,
    @Ctx() { call }: GraphQLContext,
  ) {
    const query = queryOfConnection(args);
    return toConnection(await this.records.list(query, call), () =>
      this.records.count(query, call),
    );
  }

  @Extensions({ deprecation: getToyDeprecation } satisfies DeprecatedField)
  @Query(() => ToyType, {
    nullable: true,
    description: 'Gets a toy by its id.',
    deprecationReason: 'Use `toys`; `toy` will be removed on 1 January 2031.',
  })
  async toy(
    @Arg('id', () => ID) id: string,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Toy | null> {
    return this.records.find(int64FromText(id), call);
  }

  @Idempotent()
  @Mutation(() => ToyType, { description: 'Adds a toy.' })
  async createToy(
    @Arg('input', () => NewToyInput) input: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Toy> {
    return this.records.create(newToyOf(input), call);
  }

  @Live(() => ToyType, {
    description: 'Toys as they are added, by ascending id.',
  })
  toyAdded(@Args(() => ToyArguments.live) args: object) {
    return this.live.subscribe(queryOf(args));
  }
}
