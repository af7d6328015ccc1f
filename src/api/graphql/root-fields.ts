import {
  type DocumentNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { ObservedCall, ObservedOperation } from '../../runtime/telemetry/observers.ts';
import { fragmentIn } from './fragments.ts';

/** The root fields of an operation. */
export interface RootFields {
  /** Their names in the schema, by those in the response. Fields of the same name there are one. */
  readonly byKey: ReadonlyMap<string, string>;
  /** Their names in the schema, each once. */
  readonly names: readonly string[];
}

const known = new WeakMap<OperationDefinitionNode, RootFields>();

/** @param operation of a valid document @param fragmentOf finds its fragments */
export function rootFieldsOf(
  operation: OperationDefinitionNode,
  fragmentOf: (name: string) => FragmentDefinitionNode | undefined,
): RootFields {
  const found = known.get(operation);
  if (found) return found;
  const byKey = new Map<string, string>();
  // Each fragment once: some spread each other in doublets.
  const spread = new Set<string>();
  const collect = ({ selections }: SelectionSetNode) => {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) byKey.set(node.alias?.value ?? node.name.value, node.name.value);
      else if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet);
      else if (!spread.has(node.name.value)) {
        spread.add(node.name.value);
        const fragment = fragmentOf(node.name.value);
        if (fragment) collect(fragment.selectionSet);
      }
    }
  };
  collect(operation.selectionSet);
  const fields = { byKey, names: [...new Set(byKey.values())] };
  known.set(operation, fields);
  return fields;
}

export function observedOperation(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  call: ObservedCall,
): ObservedOperation {
  const { byKey: fields } = rootFieldsOf(operation, (name) => fragmentIn(document, name));
  return { type: operation.operation, name: operation.name?.value, fields, call };
}
