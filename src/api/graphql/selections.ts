import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { ObservedCall, ObservedOperation } from '../../runtime/telemetry/observers.ts';

/** Finds the fragments of a document by name. */
export type Fragments = (name: string) => FragmentDefinitionNode | null | undefined;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return (wanted) =>
    definitions.find(
      (node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === wanted,
    );
}

/**
 * The selections of one level: fields, and fragments followed by what they hold. A fragment is entered once, because
 * spreading it again at the same level selects the same fields.
 */
export function* selectionsIn(
  { selections }: SelectionSetNode,
  fragments: Fragments,
  entered = new Set<string>(),
): Generator<SelectionNode> {
  for (const node of selections) {
    yield node;
    if (node.kind === Kind.INLINE_FRAGMENT) yield* selectionsIn(node.selectionSet, fragments, entered);
    if (node.kind !== Kind.FRAGMENT_SPREAD || entered.has(node.name.value)) continue;
    entered.add(node.name.value);
    const fragment = fragments(node.name.value);
    if (fragment) yield* selectionsIn(fragment.selectionSet, fragments, entered);
  }
}

/** The fields of one level. */
export function fieldsIn(selections: SelectionSetNode, fragments: Fragments): FieldNode[] {
  return [...selectionsIn(selections, fragments)].filter((node) => node.kind === Kind.FIELD);
}

/** The root fields of an operation. */
export interface RootFields {
  /** Their names in the schema, by those in the response. Fields of the same name there are one. */
  readonly byKey: ReadonlyMap<string, string>;
  /** Their names in the schema, each once. */
  readonly names: readonly string[];
}

const known = new WeakMap<OperationDefinitionNode, RootFields>();

export function rootFieldsOf(operation: OperationDefinitionNode, fragments: Fragments): RootFields {
  let fields = known.get(operation);
  if (!fields) {
    const nodes = fieldsIn(operation.selectionSet, fragments);
    const byKey = new Map(nodes.map(({ alias, name }) => [(alias ?? name).value, name.value]));
    fields = { byKey, names: [...new Set(byKey.values())] };
    known.set(operation, fields);
  }
  return fields;
}

/** An operation of a valid document, for observers. */
export function observedOperation(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  call: ObservedCall,
): ObservedOperation {
  const { byKey: fields } = rootFieldsOf(operation, fragmentsOf(document));
  return { type: operation.operation, name: operation.name?.value, fields, call };
}

/** The size of a selection, including fragments wherever they are spread. */
export interface Size {
  depth: number;
  aliases: number;
  fields: number;
  /** Those of the fields that are on the first level. */
  rootFields: number;
  directives: number;
}

const nothing: Size = { depth: 0, aliases: 0, fields: 0, rootFields: 0, directives: 0 };

/**
 * Measures a selection of any document, even of an invalid one. Each fragment is measured once, so that fragments that
 * spread each other do not make measuring itself expensive.
 */
export function sizeOf(
  { selections }: SelectionSetNode,
  fragments: Fragments,
  measured = new Map<string, Size>(),
): Size {
  const total = { ...nothing };
  for (const node of selections) {
    const isField = node.kind === Kind.FIELD;
    let inner = nothing;
    if (node.kind === Kind.FRAGMENT_SPREAD) inner = sizeOfFragment(node.name.value, fragments, measured);
    else if (node.selectionSet) inner = sizeOf(node.selectionSet, fragments, measured);
    total.depth = Math.max(total.depth, inner.depth + (isField ? 1 : 0));
    total.aliases += inner.aliases + (isField && node.alias ? 1 : 0);
    total.fields += inner.fields + (isField ? 1 : 0);
    total.rootFields += isField ? 1 : inner.rootFields;
    total.directives += inner.directives + (node.directives?.length ?? 0);
  }
  return total;
}

function sizeOfFragment(name: string, fragments: Fragments, measured: Map<string, Size>): Size {
  const known = measured.get(name);
  if (known) return known;
  // Another rule rejects a fragment that spreads itself; here the recursion must only end.
  measured.set(name, nothing);
  const fragment = fragments(name);
  const size = fragment ? sizeOf(fragment.selectionSet, fragments, measured) : nothing;
  measured.set(name, size);
  return size;
}
