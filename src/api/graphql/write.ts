import {
  type DocumentNode,
  type FieldNode,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { fieldsIn, fragmentsOf } from './selections.ts';

/** Writes what a resolver has returned as the JSON of a selection. @throws Error when it is not of the type */
export type Write = (value: unknown) => string;

/** A field's name in the response. */
export const keyOf = ({ alias, name }: FieldNode) => (alias ?? name).value;

/** Compiles a function that writes a field: one concatenation per object, its values in their places. */
export function compileWrite(document: DocumentNode, type: GraphQLOutputType, node: FieldNode): Write {
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
