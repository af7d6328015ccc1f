import {
  type ASTVisitor,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type ValidationContext,
} from 'graphql';
import { type ErrorCode, StoreError } from '../../errors.ts';
import { selectionsIn, sizeOf } from './selections.ts';

/** Maximum size of an operation. Every limit is checked once per document, before anything runs. */
export interface OperationLimits {
  /** Maximum number of tokens in the document as sent; and of fields when every fragment is expanded. */
  maxTokens: number;
  maxDepth: number;
  maxAliases: number;
  maxRootFields: number;
  maxDirectives: number;
}

/** A validation rule that rejects operations beyond the limits. */
export function operationLimits(limits: OperationLimits) {
  return (context: ValidationContext): ASTVisitor => ({
    OperationDefinition(operation) {
      const size = sizeOf(operation.selectionSet, context.getFragment.bind(context));
      const directives = size.directives + (operation.directives?.length ?? 0);
      const refuse = (code: ErrorCode, what: string, found: number, limit: number) => {
        if (found > limit) context.reportError(refusal(operation, code, `${what}: ${found}, at most ${limit}.`));
      };
      // A field is at least one token. Compiling takes time for every expanded field: fragments that double each other
      // would never finish.
      refuse(
        'TOO_MANY_TOKENS',
        'The operation, its fragments written out, has too many fields',
        size.fields,
        limits.maxTokens,
      );
      refuse('QUERY_TOO_DEEP', 'The operation is nested too deeply', size.depth, limits.maxDepth);
      refuse('TOO_MANY_ALIASES', 'The operation has too many aliases', size.aliases, limits.maxAliases);
      refuse('TOO_MANY_ROOT_FIELDS', 'The operation has too many root fields', size.rootFields, limits.maxRootFields);
      refuse('TOO_MANY_DIRECTIVES', 'The operation has too many directives', directives, limits.maxDirectives);
    },
  });
}

function refusal(operation: OperationDefinitionNode, code: ErrorCode, message: string): GraphQLError {
  return new GraphQLError(message, { nodes: operation, originalError: new StoreError(code, message) });
}

/**
 * A validation rule: the schema has a root type for the operation (GraphQL specification of September 2025, section
 * 5.2.1.1, Operation Type Existence). graphql-js 16 lacks it, and would start to execute a subscription
 * (https://github.com/graphql/graphql-js/issues/3592).
 */
export function existingOperationTypes(context: ValidationContext): ASTVisitor {
  return {
    OperationDefinition(node) {
      if (context.getSchema().getRootType(node.operation)) return;
      context.reportError(new GraphQLError(`The schema has no ${node.operation}s.`, { nodes: node }));
    },
  };
}

/**
 * A validation rule: the root field of a subscription has no conditions (GraphQL specification of September 2025, section
 * 5.2.4.1, Single Root Field). The rule of graphql-js 16 throws if one depends on a variable, and Apollo Server answers
 * 500; so this one is first, at the document, and removes what it has reported.
 */
export function unconditionalSubscriptions(context: ValidationContext): ASTVisitor {
  return {
    Document({ definitions }) {
      for (const node of definitions) {
        if (node.kind !== Kind.OPERATION_DEFINITION || node.operation !== OperationTypeNode.SUBSCRIPTION) continue;
        const selections = [...selectionsIn(node.selectionSet, context.getFragment.bind(context))];
        const conditional = selections.filter(({ directives = [] }) =>
          directives.some(({ name }) => name.value === 'skip' || name.value === 'include'),
        );
        if (conditional.length === 0) continue;
        const message = 'The field of a subscription is neither skipped nor included on a condition.';
        context.reportError(new GraphQLError(message, { nodes: conditional }));
        for (const selection of conditional) Object.assign(selection, { directives: [] });
      }
    },
  };
}
