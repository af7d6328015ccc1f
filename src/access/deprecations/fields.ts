import { type DocumentNode, type GraphQLSchema, TypeInfo, visit, visitWithTypeInfo } from 'graphql';
import type { Deprecation } from './deprecation.ts';

/** The `@Extensions` of a deprecated field's resolver. */
export interface DeprecatedField {
  deprecation: Deprecation;
}

/** The removal dates of deprecated fields, by their coordinates: `Query.pet`. */
type Removals = ReadonlyMap<string, Date>;

/** Finds the deprecated fields that documents use. Each document is searched once. */
export class DeprecatedFields {
  readonly #schema: GraphQLSchema;
  readonly #found = new WeakMap<DocumentNode, Removals>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** @returns the coordinates of the deprecated fields used, with their removal dates. */
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
    const Field = () => {
      const field = types.getFieldDef();
      const { deprecation } = (field?.extensions ?? {}) as Partial<DeprecatedField>;
      if (deprecation) used.set(`${types.getParentType()?.name}.${field?.name}`, deprecation.removal);
    };
    visit(document, visitWithTypeInfo(types, { Field }));
    return used;
  }
}
