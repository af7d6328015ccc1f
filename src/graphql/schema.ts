import type { GraphQLResolveInfo, GraphQLSchema } from 'graphql';
import { type AuthChecker, buildSchema, type MiddlewareFn } from 'type-graphql';
import type { KeyScope } from '../keys/api-key.entity.ts';
import { forbidden, hasScope } from '../keys/scope.ts';
import { getPetDeprecation } from '../pets/pet.deprecation.ts';
import { PetResolver } from '../pets/pet.resolver.ts';
import type { PetService } from '../pets/pet.service.ts';
import type { GraphQLContext } from './context.ts';
import type { Removals } from './deprecations.ts';

const authorize: AuthChecker<GraphQLContext, KeyScope> = ({ context }, [scope]) => {
  if (scope && !hasScope(context.caller, scope)) throw forbidden(scope);
  return true;
};

/** When deprecated fields go away. */
export const removals: Removals = new Map([['Query.pet', getPetDeprecation.removal]]);

/** Charges a root field as the operation that it is, where there is a quota. */
const metered: MiddlewareFn<GraphQLContext> = ({ context, info }, next) => {
  const { meter } = context.request;
  return meter && isRootType(info) ? meter.run(next) : next();
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
  return buildSchema({
    resolvers: [PetResolver],
    container: { get: (resolver) => resolvers.get(resolver) },
    authChecker: authorize,
    globalMiddlewares: hasQuota ? [metered] : [],
    validate: false,
  });
}
