import { type ASTVisitor, GraphQLError, type ValidationContext } from 'graphql';

/**
 * A validation rule: the schema has a root type for the operation (GraphQL specification of September 2025, section
 * 5.2.1.1, Operation Type Existence). graphql-js 16 lacks it, and would begin to execute a subscription.
 */
export function existingOperationTypes(context: ValidationContext): ASTVisitor {
  return {
    OperationDefinition(node) {
      if (context.getSchema().getRootType(node.operation)) return;
      context.reportError(new GraphQLError(`The schema has no ${node.operation}s.`, { nodes: node }));
    },
  };
}
