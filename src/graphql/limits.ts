import {
  type ASTVisitor,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';
import { type ErrorCode, StoreError } from '../errors.ts';

/** How large an operation may be. Every limit is checked once per document, before anything runs. */
export interface OperationLimits {
  /** Of the document as it is sent; and of its fields when every fragment is written out where it is spread. */
  maxTokens: number;
  maxDepth: number;
  maxAliases: number;
  maxRootFields: number;
  maxDirectives: number;
}

/** What an operation consists of, its fragments included wherever they are spread. */
interface Size {
  depth: number;
  aliases: number;
  fields: number;
  directives: number;
}

const nothing: Size = { depth: 0, aliases: 0, fields: 0, directives: 0 };

/**
 * A validation rule that refuses operations beyond the limits. Each fragment is measured once, so that fragments that
 * spread each other cannot make measuring itself expensive, yet counts at every place where it is spread.
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
      // A field is a token at least. Compiling takes as long as all of them: fragments that double each other would not end.
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

/** Measures selections, those of the document's fragments included wherever they are spread. */
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
    // A fragment that spreads itself is refused by another rule; here it must only come to an end.
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
