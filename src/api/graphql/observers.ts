import type { DocumentNode, GraphQLFormattedError, OperationDefinitionNode } from 'graphql';
import type { GraphQLContext } from './context.ts';

/** An operation that was found in a valid document. */
export interface ResolvedOperation {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  context: GraphQLContext;
}

/**
 * Watches GraphQL operations: metrics, traces. Compiled operations never reach graphql-js's `execute`, so this is the
 * place that sees all of them. It is quick, and does not throw.
 */
export interface OperationObserver {
  began(operation: ResolvedOperation): void;
  /** Its response is about to be sent. An operation that its method forbids ends without having begun. */
  ended(operation: ResolvedOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
}
