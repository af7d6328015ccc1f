import { type DocumentNode, type GraphQLSchema, TypeInfo, visit, visitWithTypeInfo } from 'graphql';

/** When a deprecated field goes away, by its coordinate: `Query.pet`. */
export type Removals = ReadonlyMap<string, Date>;

/** Finds the deprecated fields that documents use; each document is searched once. */
export class DeprecatedFields {
  readonly #schema: GraphQLSchema;
  readonly #removals: Removals;
  readonly #found = new WeakMap<DocumentNode, Removals>();

  constructor(schema: GraphQLSchema, removals: Removals) {
    this.#schema = schema;
    this.#removals = removals;
  }

  /** @returns the coordinates of the deprecated fields used, and when they go. */
  in(document: DocumentNode): Removals {
    const known = this.#found.get(document);
    if (known) return known;
    const found = this.#search(document);
    this.#found.set(document, found);
    return found;
  }

  #search(document: DocumentNode): Removals {
    const used = new Map<string, Date>();
    const types = new TypeInfo(this.#schema);
    const Field = ({ name }: { name: { value: string } }) => {
      const coordinate = `${types.getParentType()?.name}.${name.value}`;
      const removal = this.#removals.get(coordinate);
      if (removal) used.set(coordinate, removal);
    };
    visit(document, visitWithTypeInfo(types, { Field }));
    return used;
  }
}
