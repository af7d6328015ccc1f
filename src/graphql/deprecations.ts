import type { ApolloServerPlugin } from '@apollo/server';
import { type DocumentNode, type GraphQLSchema, TypeInfo, visit, visitWithTypeInfo } from 'graphql';
import type { KeyActivity } from '../keys/key-activity.ts';
import type { GraphQLContext } from './context.ts';

/** When a deprecated field goes away, by its coordinate: `Query.pet`. */
export type Removals = ReadonlyMap<string, Date>;

/** Counts the use of deprecated fields, by key. */
export function countDeprecated(
  schema: GraphQLSchema,
  removals: Removals,
  activity: KeyActivity,
): ApolloServerPlugin<GraphQLContext> {
  const found = new WeakMap<DocumentNode, string[]>();
  const listener = {
    didResolveOperation: async ({
      document,
      contextValue,
    }: {
      document: DocumentNode;
      contextValue: GraphQLContext;
    }) => {
      const used = found.get(document) ?? deprecatedIn(schema, document, removals);
      found.set(document, used);
      for (const coordinate of used) {
        activity.calledDeprecated(contextValue.caller?.id ?? 0, coordinate, removals.get(coordinate) as Date);
      }
    },
  };
  return { requestDidStart: async () => listener };
}

function deprecatedIn(schema: GraphQLSchema, document: DocumentNode, removals: Removals): string[] {
  const used: string[] = [];
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      Field({ name }) {
        const coordinate = `${types.getParentType()?.name}.${name.value}`;
        if (removals.has(coordinate)) used.push(coordinate);
      },
    }),
  );
  return used;
}
