import 'reflect-metadata';
import { ApolloServer } from '@apollo/server';
import fastifyApollo from '@as-integrations/fastify';
import {
  Entity,
  Enum,
  PrimaryKey,
  Property,
  ReflectMetadataProvider,
} from '@mikro-orm/decorators/legacy';
import {
  BigIntType,
  type EntityManager,
  type FilterQuery,
  MikroORM,
} from '@mikro-orm/postgresql';
import Fastify from 'fastify';
import {
  Arg,
  Args,
  ArgsType,
  buildSchema,
  Ctx,
  Field,
  ID,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  registerEnumType,
} from 'type-graphql';

/**
 * This service's libraries, used as their documentation shows: one class for
 * table and type, `em.find`, Apollo's defaults.
 */

enum PetStatus {
  available = 'available',
  pending = 'pending',
  sold = 'sold',
}
registerEnumType(PetStatus, { name: 'PetStatus' });

@Entity({ tableName: 'pet' })
@ObjectType()
class Pet {
  @PrimaryKey({ type: new BigIntType('number') })
  @Field(() => ID)
  id!: number;

  @Property({ type: 'text' })
  @Field(() => String)
  name!: string;

  @Property({ type: new BigIntType('number') })
  @Field(() => ID)
  categoryId!: number;

  @Enum(() => PetStatus)
  @Field(() => PetStatus)
  status!: PetStatus;
}

@InputType()
class NewPet {
  @Field(() => String)
  name!: string;

  @Field(() => ID)
  categoryId!: string;

  @Field(() => PetStatus, { defaultValue: PetStatus.available })
  status!: PetStatus;
}

@ArgsType()
class PetQuery {
  @Field(() => PetStatus, { nullable: true })
  status?: PetStatus;

  @Field(() => Int, { defaultValue: 20 })
  limit!: number;

  @Field(() => ID, { nullable: true })
  after?: string;
}

interface Context {
  em: EntityManager;
}

function list(
  em: EntityManager,
  { status, limit, after }: PetQuery,
): Promise<Pet[]> {
  const where: FilterQuery<Pet> = {
    ...(status && { status }),
    ...(after && { id: { $gt: Number(after) } }),
  };
  return em.find(Pet, where, { orderBy: { id: 'asc' }, limit });
}

async function add(em: EntityManager, newPet: NewPet): Promise<Pet> {
  const pet = em.create(Pet, {
    ...newPet,
    categoryId: Number(newPet.categoryId),
  });
  await em.persist(pet).flush();
  return pet;
}

@Resolver(() => Pet)
class PetResolver {
  @Query(() => [Pet])
  pets(
    @Args(() => PetQuery) query: PetQuery,
    @Ctx() { em }: Context,
  ): Promise<Pet[]> {
    return list(em, query);
  }

  @Query(() => Pet, { nullable: true })
  pet(
    @Arg('id', () => ID) id: string,
    @Ctx() { em }: Context,
  ): Promise<Pet | null> {
    return em.findOne(Pet, { id: Number(id) });
  }

  @Mutation(() => Pet)
  createPet(
    @Arg('input', () => NewPet) input: NewPet,
    @Ctx() { em }: Context,
  ): Promise<Pet> {
    return add(em, input);
  }
}

const orm = await MikroORM.init({
  entities: [Pet],
  clientUrl: process.env.BENCH_DATABASE_URL ?? '',
  metadataProvider: ReflectMetadataProvider,
  pool: { max: 10 },
});
const apollo = new ApolloServer<Context>({
  schema: await buildSchema({ resolvers: [PetResolver], validate: false }),
});
await apollo.start();

const app = Fastify();
await app.register(fastifyApollo(apollo), {
  context: async () => ({ em: orm.em.fork() }),
});

const querystring = {
  type: 'object',
  properties: { limit: { type: 'integer', default: 20 } },
};
app.get<{ Querystring: PetQuery }>(
  '/v1/pets',
  { schema: { querystring } },
  (request) => list(orm.em.fork(), request.query),
);
app.get<{ Params: { petId: number } }>(
  '/v1/pets/:petId',
  async (request, reply) => {
    const pet = await orm.em
      .fork()
      .findOne(Pet, { id: Number(request.params.petId) });
    return (
      pet ??
      reply.code(404).send({
        code: 'NOT_FOUND',
        message: 'There is no such animal.',
        status: 404,
      })
    );
  },
);
app.post<{ Body: NewPet }>('/v1/pets', async (request, reply) => {
  reply.code(201);
  return add(orm.em.fork(), request.body);
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
