/**
 * A GraphQL document that knows its types, as GraphQL Code Generator's client
 * preset makes them: a `TypedDocumentString` (`documentMode: 'string'`), or a
 * `TypedDocumentNode`, for which the store needs the option `print`. Or plain
 * text.
 */
export interface TypedDocument<Data, Variables> {
  toString(): string;
  __apiType?: (variables: Variables) => Data;
}

/**
 * What follows a document: its variables, which may be left out where none is
 * required.
 */
export type Following<Variables, Options> =
  Record<string, never> extends Variables
    ? [variables?: Variables, options?: Options]
    : [variables: Variables, options?: Options];

/**
 * @throws TypeError for a syntax tree when there is nothing to print it with
 */
export function textOf(
  document: TypedDocument<never, never>,
  print: ((node: never) => string) | undefined,
): string {
  if (!('kind' in Object(document))) return `${document}`;
  if (print) return print(document as never);
  throw new TypeError(
    "This document is a syntax tree: give AnimalStore { print } from 'graphql', or generate text.",
  );
}
