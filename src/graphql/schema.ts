import type { GraphQLSchema } from 'graphql';
import { type AuthChecker, buildSchema } from 'type-graphql';
import type { KeyScope } from '../keys/api-key.entity.ts';
import { assertScope } from '../keys/scope.ts';
import { PetResolver } from '../pets/pet.resolver.ts';
import type { PetService } from '../pets/pet.service.ts';
import type { GraphQLContext } from './context.ts';

const hasScope: AuthChecker<GraphQLContext, KeyScope> = ({ context }, [scope]) => {
  if (scope) assertScope(context.caller, scope);
  return true;
};

/** Builds the schema from the resolvers of all domain modules. */
export async function createSchema({ pets }: { pets: PetService }): Promise<GraphQLSchema> {
  const resolvers = new Map<unknown, object>([[PetResolver, new PetResolver(pets)]]);
  return buildSchema({
    resolvers: [PetResolver],
    container: { get: (resolver) => resolvers.get(resolver) },
    authChecker: hasScope,
    validate: false,
  });
}
