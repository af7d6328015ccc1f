import type { GraphQLResolveInfo, GraphQLSchema } from 'graphql';
import { type AuthChecker, buildSchema, type MiddlewareFn } from 'type-graphql';
import type { KeyScope } from '../keys/api-key.entity.ts';
import { forbidden, hasScope } from '../keys/scope.ts';
import { getPetDeprecation } from '../pets/pet.deprecation.ts';
import { PetResolver } from '../pets/pet.resolver.ts';
import { itemsIn } from '../pets/pet.rules.ts';
import type { PetService } from '../pets/pet.service.ts';
import type { GraphQLContext } from './context.ts';
import { sizeArgument } from './cost.ts';
import type { Removals } from './deprecations.ts';

const authorize: AuthChecker<GraphQLContext, KeyScope> = ({ context }, [scope]) => {
  if (scope && !hasScope(context.caller, scope)) throw forbidden(scope);
  return true;
};

/** When deprecated fields go away. */
export const removals: Removals = new Map([['Query.pet', getPetDeprecation.removal]]);

/** Charges a root field as the operation that it is, where there is a quota. */
const metered: MiddlewareFn<GraphQLContext> = ({ context, args, info }, next) => {
  const { meter } = context.request;
  if (!meter || !isRootType(info)) return next();
  const field = info.parentType.getFields()[info.fieldName];
  const size = field && sizeArgument(field);
  return meter.run(size ? itemsIn(args[size.name]) : 1, next);
};

function isRootType({ parentType, schema }: GraphQLResolveInfo): boolean {
  return parentType === schema.getQueryType() || parentType === schema.getMutationType();
}

export interface SchemaOptions {
  pets: PetService;
  /** Whether callers have quotas. */
  hasQuota?: boolean;
}

/** Builds the schema from the resolvers of all domain modules. */
export async function createSchema({ pets, hasQuota = false }: SchemaOptions): Promise<GraphQLSchema> {
  const resolvers = new Map<unknown, object>([[PetResolver, new PetResolver(pets)]]);
  const schema = await buildSchema({
    resolvers: [PetResolver],
    container: { get: (resolver) => resolvers.get(resolver) },
    authChecker: authorize,
    globalMiddlewares: hasQuota ? [metered] : [],
    validate: false,
  });
  // type-graphql has no place for them.
  for (const type of [schema.getQueryType(), schema.getMutationType()]) {
    if (type) type.description = descriptions[type.name];
  }
  return schema;
}

const descriptions: Record<string, string> = {
  Query: 'What can be read. Every operation needs an API key.',
  Mutation: 'What can be changed. It needs an API key with the scope `write`.',
};
