import {
  type ASTVisitor,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
} from 'graphql';

/** Maximum size of an operation. */
interface OperationLimits {
  /**
   * Maximum number of fields when every fragment is expanded. The parser's own
   * option bounds the text.
   */
  maxFields: number;
  maxDepth: number;
  /** It bounds the root fields, too: two without aliases are one. */
  maxAliases: number;
}

/**
 * A validation rule that rejects operations beyond the limits. The errors have
 * a `code` in their extensions.
 */
export function operationLimits({
  maxFields,
  maxDepth,
  maxAliases,
}: OperationLimits) {
  return (context: ValidationContext): ASTVisitor => ({
    OperationDefinition(node) {
      const fragments = context.getFragment.bind(context);
      const { fields, depth, aliases } = sizeOf(node.selectionSet, fragments);
      const limit = (
        code: string,
        fault: string,
        found: number,
        most: number,
      ) => {
        if (found <= most) return;
        const message = `The operation${fault}: ${found}, at most ${most}.`;
        const options = { nodes: node, extensions: { code } };
        context.reportError(new GraphQLError(message, options));
      };
      // A field is at least one token. Compilation expands every field, so
      // fragments that double each other would never finish.
      const long = ', its fragments written out, has too many fields';
      limit('TOO_MANY_TOKENS', long, fields, maxFields);
      limit('QUERY_TOO_DEEP', ' is nested too deeply', depth, maxDepth);
      limit('TOO_MANY_ALIASES', ' has too many aliases', aliases, maxAliases);
    },
  });
}

/**
 * A validation rule: the root field of a subscription has no conditions
 * (GraphQL specification of September 2025, section 5.2.4.1, Single Root
 * Field). The rule of graphql-js 16 throws if one depends on a variable, and
 * Apollo Server answers 500; so this one is first, at the document, and removes
 * what it has reported.
 */
export function unconditionalSubscriptions(
  context: ValidationContext,
): ASTVisitor {
  return {
    Document({ definitions }) {
      const fragments = context.getFragment.bind(context);
      for (const node of definitions) {
        if (!('operation' in node) || node.operation !== 'subscription')
          continue;
        const selections = selectionsIn(node.selectionSet, fragments);
        const conditional = [...selections].filter(({ directives = [] }) =>
          directives.some(({ name }) => /^(?:skip|include)$/.test(name.value)),
        );
        if (conditional.length === 0) continue;
        const message =
          'The field of a subscription is neither skipped nor included on a condition.';
        context.reportError(new GraphQLError(message, { nodes: conditional }));
        for (const selection of conditional)
          Object.assign(selection, { directives: [] });
      }
    },
  };
}

/** Finds the fragments of a document by name. */
export type Fragments = (
  name: string,
) => FragmentDefinitionNode | null | undefined;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  const fragments = definitions.filter(
    (node) => node.kind === Kind.FRAGMENT_DEFINITION,
  );
  return (wanted) => fragments.find(({ name }) => name.value === wanted);
}

/**
 * Yields the selections of one level: fields, and fragments followed by their
 * selections. Each fragment is entered once, because spreading it again at the
 * same level selects the same fields.
 */
function* selectionsIn(
  { selections }: SelectionSetNode,
  fragments: Fragments,
  entered = new Set<string>(),
): Generator<SelectionNode> {
  for (const node of selections) {
    yield node;
    if (node.kind === Kind.INLINE_FRAGMENT)
      yield* selectionsIn(node.selectionSet, fragments, entered);
    if (node.kind !== Kind.FRAGMENT_SPREAD || entered.has(node.name.value))
      continue;
    entered.add(node.name.value);
    const fragment = fragments(node.name.value);
    if (fragment)
      yield* selectionsIn(fragment.selectionSet, fragments, entered);
  }
}

/** The fields of one level, also those in fragments. */
export function fieldsIn(
  selections: SelectionSetNode,
  fragments: Fragments,
): FieldNode[] {
  return [...selectionsIn(selections, fragments)].filter(
    (node) => node.kind === Kind.FIELD,
  );
}

/**
 * A longer alias counts as several, because each item of the answer repeats it.
 */
const aliasLength = 64;

const nothing: Pick<SelectionSetNode, 'selections'> = { selections: [] };
const noSize = { depth: 0, aliases: 0, fields: 0 };
type Size = typeof noSize;

/**
 * Measures a selection with its fragments expanded, also in an invalid
 * document. Each fragment is measured once, so that measuring stays cheap when
 * fragments spread each other.
 */
function sizeOf(
  selectionSet: typeof nothing,
  fragments: Fragments,
  measured = new Map<unknown, Size>(),
) {
  const known = measured.get(selectionSet);
  if (known) return known;
  // Ends the recursion of a fragment that spreads itself, which another rule
  // rejects.
  measured.set(selectionSet, noSize);
  const total = { ...noSize };
  for (const node of selectionSet.selections) {
    const isSpread = node.kind === Kind.FRAGMENT_SPREAD;
    const { selectionSet: below = nothing } =
      (isSpread && fragments(node.name.value)) || (node as FieldNode);
    const inner = sizeOf(below, fragments, measured);
    const isField = node.kind === Kind.FIELD;
    const alias = (isField && node.alias?.value) || '';
    total.depth = Math.max(total.depth, inner.depth + Number(isField));
    total.aliases += inner.aliases + Math.ceil(alias.length / aliasLength);
    total.fields += inner.fields + Number(isField);
  }
  measured.set(selectionSet, total);
  return total;
}
