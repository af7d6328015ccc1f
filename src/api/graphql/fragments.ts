import { type DocumentNode, type FragmentDefinitionNode, Kind } from 'graphql';

/** @returns undefined when the document has none of this name. */
export function fragmentIn({ definitions }: DocumentNode, name: string): FragmentDefinitionNode | undefined {
  return definitions.find(
    (node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === name,
  );
}
