import {
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import { writtenOnce } from '../../storage/input/page.ts';
import { compileWrite, keyOf, type Write } from './write.ts';

/**
 * Most of the cost of a page is an object per item, and a check per value, only to make JSON of them. Where a root field
 * returns nothing but members of objects (no resolver below it), the JSON is written from what the resolver returns.
 */
export class Writers {
  /** The schema with such fields as scalars: an operation on it ends where the resolver has returned. */
  readonly schema: GraphQLSchema;
  readonly #original: GraphQLSchema;

  constructor(original: GraphQLSchema) {
    const raw = new GraphQLScalarType({ name: '__Raw', serialize: (value) => value });
    const cut = (type: GraphQLObjectType | null | undefined) => {
      if (!type) return undefined;
      const { fields, ...rest } = type.toConfig();
      const entries = Object.entries(fields).map(([name, field]) => {
        if (!isPlain(field.type)) return [name, field];
        return [name, { ...field, type: isNonNullType(field.type) ? new GraphQLNonNull(raw) : raw }];
      });
      return new GraphQLObjectType({ ...rest, fields: Object.fromEntries(entries) });
    };
    this.#original = original;
    this.schema = new GraphQLSchema({ query: cut(original.getQueryType()), mutation: cut(original.getMutationType()) });
  }

  /**
   * @returns the operation on the schema of scalars, and how to write each of its fields; undefined when a field has
   *   resolvers below it, or is not selected directly and once.
   */
  of(document: DocumentNode, operation: OperationDefinitionNode): Cut | undefined {
    const root = this.#original.getRootType(operation.operation);
    const writes = new Map<string, RootField>();
    const selections: FieldNode[] = [];
    for (const node of operation.selectionSet.selections) {
      const field = node.kind === Kind.FIELD && root?.getFields()[node.name.value];
      if (!field || !isPlain(field.type)) return undefined;
      const key = keyOf(node);
      if (writes.has(key)) return undefined;
      writes.set(key, { write: compileWrite(document, field.type, node), isNullable: !isNonNullType(field.type) });
      selections.push({ ...node, selectionSet: undefined });
    }
    const cut = { ...operation, selectionSet: { ...operation.selectionSet, selections } };
    return { document: { ...document, definitions: [cut] }, writes };
  }
}

export interface Cut {
  document: DocumentNode;
  /** By the names in the response. */
  writes: ReadonlyMap<string, RootField>;
}

interface RootField {
  write: Write;
  isNullable: boolean;
}

/**
 * Writes the values of root fields as JSON. One that is not of its type is an error of its field.
 *
 * @param errors gets them
 * @returns undefined when there is no data
 */
export function writtenData(
  values: Record<string, unknown>,
  writes: Cut['writes'],
  errors: GraphQLError[],
): string | undefined {
  let text = '';
  for (const [key, { write, isNullable }] of writes) {
    const label = `${text === '' ? '{' : ','}${JSON.stringify(key)}:`;
    try {
      const value = values[key];
      text += label + (Array.isArray(value) ? writtenOnce(value, write, undefined, write) : write(value));
    } catch (cause) {
      const { message } = cause as Error;
      errors.push(new GraphQLError(message, { path: [key], originalError: cause as Error }));
      if (!isNullable) return undefined;
      text += `${label}null`;
    }
  }
  return `${text}}`;
}

/** True for objects and lists of them without a resolver or an argument, all the way down. */
function isPlain(type: GraphQLOutputType, within: GraphQLOutputType[] = []): boolean {
  if (isNonNullType(type) || isListType(type)) return isPlain(type.ofType, within);
  if (!isObjectType(type)) return isLeafType(type) && within.length > 0;
  if (type.isTypeOf || within.includes(type)) return false;
  return Object.values(type.getFields()).every(
    ({ resolve, args, type: inner }) => !resolve && args.length === 0 && isPlain(inner, [...within, type]),
  );
}
