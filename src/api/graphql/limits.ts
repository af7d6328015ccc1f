import {
  type ASTVisitor,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import { type ErrorCode, StoreError } from '../../errors.ts';

/** Maximum size of an operation. Every limit is checked once per document, before anything runs. */
export interface OperationLimits {
  /** Maximum number of tokens in the document as sent; and of fields when every fragment is expanded. */
  maxTokens: number;
  maxDepth: number;
  maxAliases: number;
  maxRootFields: number;
  maxDirectives: number;
}

/** The size of an operation, including its fragments wherever they are spread. */
interface Size {
  depth: number;
  aliases: number;
  fields: number;
  directives: number;
}

const nothing: Size = { depth: 0, aliases: 0, fields: 0, directives: 0 };

/**
 * A validation rule that rejects operations beyond the limits. Each fragment is measured once, so that fragments that
 * spread each other do not make measuring itself expensive, yet it counts wherever it is spread.
 */
export function operationLimits(limits: OperationLimits) {
  return (context: ValidationContext): ASTVisitor => ({
    OperationDefinition(operation) {
      const measure = measurer(context.getDocument());
      const size = measure(operation.selectionSet);
      const rootFields = measure(operation.selectionSet, true).fields;
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
      refuse('TOO_MANY_ROOT_FIELDS', 'The operation has too many root fields', rootFields, limits.maxRootFields);
      refuse('TOO_MANY_DIRECTIVES', 'The operation has too many directives', directives, limits.maxDirectives);
    },
  });
}

function refusal(operation: OperationDefinitionNode, code: ErrorCode, message: string): GraphQLError {
  return new GraphQLError(message, { nodes: operation, originalError: new StoreError(code, message) });
}

type Measure = (selections: SelectionSetNode | undefined, rootOnly?: boolean) => Size;

export function measurer(document: DocumentNode): Measure {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions) {
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  }
  const measured = new Map<string, Size>();

  const ofFragment = (name: string, rootOnly: boolean): Size => {
    const key = `${name} ${rootOnly}`;
    const known = measured.get(key);
    if (known) return known;
    // Another rule rejects a fragment that spreads itself; here the recursion must only end.
    measured.set(key, nothing);
    const size = measure(fragments.get(name)?.selectionSet, rootOnly);
    measured.set(key, size);
    return size;
  };

  const measure: Measure = (selections, rootOnly = false) => {
    const total = { ...nothing };
    for (const selection of selections?.selections ?? []) {
      const isField = selection.kind === Kind.FIELD;
      let inner: Size;
      if (selection.kind === Kind.FRAGMENT_SPREAD) inner = ofFragment(selection.name.value, rootOnly);
      else inner = isField && rootOnly ? nothing : measure(selection.selectionSet, rootOnly);
      total.depth = Math.max(total.depth, inner.depth + (isField ? 1 : 0));
      total.aliases += inner.aliases + (isField && selection.alias ? 1 : 0);
      total.fields += inner.fields + (isField ? 1 : 0);
      total.directives += inner.directives + (selection.directives?.length ?? 0);
    }
    return total;
  };
  return measure;
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
 * 5.2.4.1, Single Root Field). The rule of graphql-js 16 throws where one depends on a variable, and Apollo Server answers
 * 500; so this one is first, at the document, and removes what it has reported.
 */
export function unconditionalSubscriptions(context: ValidationContext): ASTVisitor {
  return {
    Document({ definitions }) {
      for (const node of definitions) {
        if (node.kind !== Kind.OPERATION_DEFINITION || node.operation !== OperationTypeNode.SUBSCRIPTION) continue;
        const conditional = rootSelections(node.selectionSet, context).filter(({ directives = [] }) =>
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

/** Fields, and the fragments around them, each once. */
function rootSelections({ selections }: SelectionSetNode, context: ValidationContext): SelectionNode[] {
  const found = [...selections];
  const spread = new Set<string>();
  for (const one of found) {
    if (one.kind === Kind.INLINE_FRAGMENT) found.push(...one.selectionSet.selections);
    else if (one.kind === Kind.FRAGMENT_SPREAD && !spread.has(one.name.value)) {
      spread.add(one.name.value);
      found.push(...(context.getFragment(one.name.value)?.selectionSet.selections ?? []));
    }
  }
  return found;
}
