import {
  Arg,
  Args,
  type ClassType,
  Ctx,
  FieldResolver,
  Int,
  Mutation,
  Query,
  Resolver,
  Root,
} from 'type-graphql';
import { Type } from 'typebox';
import { type Int64, int64FromText } from '../../validation/int64.ts';
import { removalSchema } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { argumentsOf, inputTypeOf, objectTypeOf } from '../graphql/members.ts';
import {
  connectionOf,
  connectionValidator,
  ID,
  Idempotent,
  ListArgs,
  Live,
  toConnection,
} from '../graphql/types.ts';
import { orNotFound } from '../rest/responses.ts';
import {
  type Operation,
  type Parts,
  type Relation,
  type Serving,
  type Transition,
  transit,
} from './parts.ts';

type ResolverClass = new (serving: Serving) => object;
/** An item, with the ids of others by their members. */
type Row = { readonly id: Int64 } & Record<string, Int64 | null>;

/** The GraphQL types of a resource, and the classes of its resolvers. */
export function graphQLOf(parts: Parts) {
  const { operations, relations, transitions, names, schemas } = parts;
  const type = objectTypeOf(schemas.item) as ClassType;
  const ofOperations = operations.map((operation) =>
    resolvers[operation](type, parts),
  );
  const ofRelations = Object.entries(relations).flatMap(([field, relation]) => [
    relationField(type, field, relation),
    ...(relation.list ? [listField(type, parts, relation, relation.list)] : []),
    ...(relation.across ? [acrossField(parts, relation)] : []),
  ]);
  const ofTransitions = Object.entries(transitions).map(([name, one]) =>
    transitionOf(type, names, name, one),
  );
  return {
    type,
    resolvers: [...ofOperations, ...ofRelations, ...ofTransitions],
  };
}

type MakeResolver = (type: ClassType, parts: Parts) => ResolverClass;

const resolvers: Record<Operation, MakeResolver> = {
  list(type, { names, schemas }) {
    const args = argumentsOf(schemas.query);
    const Connection = connectionOf(type, names.type, names.nouns);
    const queryOf = validator(schemas.query, { isLenient: true });
    const queryOfConnection = connectionValidator(schemas.query);

    @Resolver()
    class Lists {
      constructor(private readonly serving: Serving) {}

      @Query(() => [type], {
        name: names.many,
        description: `Lists ${names.nouns}.`,
      })
      async list(
        @Args(() => args.list) args: object,
        @Ctx() { call }: GraphQLContext,
      ) {
        const query = queryOf(args) as never;
        return (await this.serving.service.list(query, call)).items;
      }

      @Query(() => Connection, {
        name: `${names.many}Connection`,
        description: 'The same list as a Relay connection.',
      })
      async connection(
        @Args(() => args.connection) args: object,
        @Ctx() { call }: GraphQLContext,
      ) {
        const { service } = this.serving;
        const query = queryOfConnection(args) as never;
        return toConnection(await service.list(query, call), () =>
          service.count(query, call),
        );
      }
    }
    return Lists;
  },

  find(type, { names }) {
    @Resolver()
    class Find {
      constructor(private readonly serving: Serving) {}

      @Query(() => type, {
        name: names.one,
        nullable: true,
        description: `Fetches one ${names.noun}; null when there is none.`,
      })
      find(@Arg('id', () => ID) id: string, @Ctx() { call }: GraphQLContext) {
        return this.serving.service.find(int64FromText(id), call);
      }
    }
    return Find;
  },

  create(type, { names, schemas }) {
    const Input = inputTypeOf(schemas.input);
    const inputOf = validator(schemas.input, { isLenient: true });

    @Resolver()
    class Create {
      constructor(private readonly serving: Serving) {}

      @Idempotent()
      @Mutation(() => type, {
        name: `create${names.type}`,
        description: `Adds one to the ${names.nouns}.`,
      })
      async create(
        @Arg('input', () => Input) input: object,
        @Ctx() { call }: GraphQLContext,
      ) {
        return this.serving.service.create(inputOf(input) as never, call);
      }
    }
    return Create;
  },

  change(type, { names, schemas }) {
    const Change = inputTypeOf(schemas.change);
    const changeOf = validator(schemas.change, { isLenient: true });

    @Resolver()
    class Changes {
      constructor(private readonly serving: Serving) {}

      @Mutation(() => type, {
        name: `change${names.type}`,
        description: 'Changes the one that has this version.',
      })
      async change(
        @Arg('id', () => ID) id: string,
        @Arg('change', () => Change) change: object,
        @Ctx() { call }: GraphQLContext,
      ) {
        const { service } = this.serving;
        const input = changeOf(change) as never;
        const changed = await service.change(int64FromText(id), input, call);
        return orNotFound(changed, names.noun, id);
      }
    }
    return Changes;
  },

  remove(_, { names }) {
    const removalOf = validator(removalSchema, { isLenient: true });

    @Resolver()
    class Remove {
      constructor(private readonly serving: Serving) {}

      @Mutation(() => Boolean, {
        name: `remove${names.type}`,
        description: 'Removes one; with a version only if it has this version.',
      })
      async remove(
        @Arg('id', () => ID) id: string,
        @Arg('version', () => Int, { nullable: true }) version: unknown,
        @Ctx() { call }: GraphQLContext,
      ) {
        const { service } = this.serving;
        const removal = removalOf({ version });
        const removed = await service.remove(int64FromText(id), removal, call);
        return orNotFound(removed, names.noun, id);
      }
    }
    return Remove;
  },

  follow(type, { names, schemas }) {
    const args = argumentsOf(schemas.query);
    const queryOf = validator(schemas.query, { isLenient: true });

    @Resolver()
    class Follow {
      constructor(private readonly serving: Serving) {}

      @Live(() => type, {
        name: `${names.one}Added`,
        description: `The ${names.nouns} as they are added, by ascending id.`,
      })
      follow(@Args(() => args.live) args: object) {
        return this.serving.live?.subscribe(queryOf(args) as never);
      }
    }
    return Follow;
  },
};

/** `Visit.pet`: the item of the other resource. */
function relationField(
  type: ClassType,
  field: string,
  { by, to }: Relation,
): ResolverClass {
  @Resolver(() => type)
  class ToOne {
    constructor(private readonly serving: Serving) {}

    @FieldResolver(() => to(), {
      nullable: true,
      description: `The ${field}.`,
    })
    async [field](@Root() item: Row, @Ctx() { call }: GraphQLContext) {
      const id = item[by];
      return id == null ? null : this.serving.related[field]?.find(id, call);
    }
  }
  return ToOne;
}

/** `Pet.visits`: the list of those that refer to it. */
function listField(
  type: ClassType,
  { names, schemas }: Parts,
  { by, to }: Relation,
  field: string,
): ResolverClass {
  const { [by]: _, ...others } = schemas.query.properties;
  const args = argumentsOf(Type.Object(others));
  const queryOf = validator(schemas.query, { isLenient: true });

  @Resolver(() => to())
  class ToMany {
    constructor(private readonly serving: Serving) {}

    @FieldResolver(() => [type], { description: `Its ${names.nouns}.` })
    async [field](
      @Root() { id }: Row,
      @Args(() => args.list) args: object,
      @Ctx() { call }: GraphQLContext,
    ) {
      const query = { ...queryOf(args), [by]: id } as never;
      return (await this.serving.service.list(query, call)).items;
    }
  }
  return ToMany;
}

/** `Pet.tags`: the tags of the list `Pet.petTags`. */
function acrossField(
  { relations, schemas }: Parts,
  { by, to, across }: Relation,
): ResolverClass {
  const { list = '', relation = '' } = across ?? {};
  const far = relations[relation] as Relation;
  const queryOf = validator(schemas.query, { isLenient: true });

  @Resolver(() => to())
  class Across {
    constructor(private readonly serving: Serving) {}

    @FieldResolver(() => [far.to()], {
      description: `Its ${list}, in the order in which they were linked.`,
    })
    async [list](
      @Root() { id }: Row,
      @Args(() => ListArgs) args: object,
      @Ctx() { call }: GraphQLContext,
    ) {
      const { service, related } = this.serving;
      const query = { ...queryOf(args), [by]: id } as never;
      const links = (await service.list(query, call)).items as readonly Row[];
      const found = links.map((link) =>
        related[relation]?.find(link[far.by] ?? undefined, call),
      );
      return (await Promise.all(found)).filter((one) => one !== null);
    }
  }
  return Across;
}

function transitionOf(
  type: ClassType,
  { type: suffix, noun }: Parts['names'],
  name: string,
  transition: Transition,
): ResolverClass {
  const { description } = transition;

  @Resolver()
  class Transitions {
    constructor(private readonly serving: Serving) {}

    @Mutation(() => type, { name: `${name}${suffix}`, description })
    async run(
      @Arg('id', () => ID) id: string,
      @Ctx() { call }: GraphQLContext,
    ) {
      const { service } = this.serving;
      const given = int64FromText(id);
      const changed = await transit(service, transition, given, call);
      return orNotFound(changed, noun, id);
    }
  }
  return Transitions;
}
