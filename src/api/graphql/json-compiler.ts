import {
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  type GraphQLLeafType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import { writtenOnce } from '../../storage/input/page.ts';
import { fieldsIn, fragmentsOf } from './selections.ts';

/**
 * Most of the cost of a page is an object per item, and a check per value, only to make JSON of them. Where a root field
 * returns nothing but members of objects (no resolver below it), the JSON is written from what the resolver returns.
 */
export class JsonCompiler {
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

interface Cut {
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

/** Writes what a resolver has returned as the JSON of a selection. @throws Error when it is not of the type */
type Write = (value: unknown) => string;

/** A field's name in the response. */
const keyOf = ({ alias, name }: FieldNode) => (alias ?? name).value;

/** Compiles a function that writes a field: one concatenation per object, its values in their places. */
function compileWrite(document: DocumentNode, type: GraphQLOutputType, node: FieldNode): Write {
  const functions: string[] = [];
  const leaves: Write[] = [];

  /** @returns an expression that writes `value`, itself an expression without a call */
  function expression(type: GraphQLOutputType, nodes: FieldNode[], coordinate: string, value: string): string {
    if (!isNonNullType(type)) return `(${value} == null ? 'null' : ${present(type, nodes, coordinate, value)})`;
    const text = present(type.ofType, nodes, coordinate, value);
    // Only what is not there needs the check; leaves make it where they find nothing to write.
    return isLeafType(type.ofType) ? text : `(${value} == null ? missing(${JSON.stringify(coordinate)}) : ${text})`;
  }

  function present(type: GraphQLOutputType, nodes: FieldNode[], coordinate: string, value: string): string {
    if (isListType(type)) return `${list(expression(type.ofType, nodes, coordinate, 'one'))}(${value})`;
    if (isObjectType(type)) return `${object(type, nodes)}(${value})`;
    const { quick, write } = leafOf(type as GraphQLLeafType, coordinate);
    const at = `leaves[${leaves.push(write) - 1}]`;
    return quick ? `(${quick.test(value)} ? ${quick.text(value)} : ${at}(${value}))` : `${at}(${value})`;
  }

  function list(item: string): string {
    return define(`let text = '';
      for (const one of value) text += (text === '' ? '' : ',') + ${item};
      return '[' + text + ']';`);
  }

  function object(type: GraphQLObjectType, nodes: FieldNode[]): string {
    const members = [...mergedFields(document, nodes)].map(([key, same], at) => {
      const name = (same[0] as FieldNode).name.value;
      const label = `${at === 0 ? '{' : ','}${JSON.stringify(key)}:`;
      const field = type.getFields()[name];
      // The only field that is on no type.
      if (!field) return JSON.stringify(`${label}"${type.name}"`);
      const value = `value[${JSON.stringify(name)}]`;
      return `${JSON.stringify(label)} + ${expression(field.type, same, `${type.name}.${name}`, value)}`;
    });
    return define(`return ${members.join(' + ')} + '}';`);
  }

  function define(body: string): string {
    return `write${functions.push(`function write${functions.length}(value) { ${body} }`) - 1}`;
  }

  const text = expression(type, [node], node.name.value, 'value');
  const body = `'use strict'; ${functions.join('\n')} return (value) => ${text};`;
  return new Function('leaves', 'missing', 'isSafe', body)(leaves, missing, isSafe);
}

function missing(coordinate: string): never {
  throw new Error(`Cannot return null for non-nullable field ${coordinate}.`);
}

/** True for text that JSON has as it is, in quotes; lone surrogates are escaped (RFC 8259, section 8.2). */
const isSafe = (text: string): boolean => !/["\\\u0000-\u001f\ud800-\udfff]/.test(text);

/** The fields of selections by their names in the response, repetitions merged. */
function mergedFields(document: DocumentNode, nodes: FieldNode[]): Map<string, FieldNode[]> {
  const fragments = fragmentsOf(document);
  const fields = nodes.flatMap(({ selectionSet }) => (selectionSet ? fieldsIn(selectionSet, fragments) : []));
  return Map.groupBy(fields, keyOf);
}

interface Leaf {
  /** Expressions for the most frequent kind of value. */
  quick?: { test(value: string): string; text(value: string): string };
  /** Writes any value as its type serialises it. */
  write: Write;
}

function leafOf(type: GraphQLLeafType, coordinate: string): Leaf {
  const write: Write = (value) => {
    const serialized = value == null ? missing(coordinate) : type.serialize(value);
    if (serialized == null) throw new Error(`${coordinate} cannot be represented.`);
    return JSON.stringify(serialized);
  };
  if (isEnumType(type)) {
    const texts = new Map(type.getValues().map(({ name, value }) => [value, JSON.stringify(name)]));
    return { write: (value) => texts.get(value) ?? write(value) };
  }
  const text = (value: string) => `'"' + ${value} + '"'`;
  if (type.name === 'ID') return { quick: { test: (value) => `typeof ${value} === 'number'`, text }, write };
  if (type.name !== 'String') return { write };
  return { quick: { test: (value) => `typeof ${value} === 'string' && isSafe(${value})`, text }, write };
}
