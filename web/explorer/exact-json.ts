import { type Node, parseTree } from 'jsonc-parser';

/**
 * JSON with exact numbers: `JSON.parse` would change 9007199254740993 to
 * ...992.
 */

type Reviver = (
  name: string,
  value: unknown,
  context?: { source?: string },
) => unknown;

/**
 * Reads JSON so that `JSON.stringify` writes its numbers as they were.
 *
 * @throws SyntaxError
 */
export function parseExactly(text: string): unknown {
  const exact: Reviver = (_name, value, context) =>
    typeof value === 'number' && context?.source
      ? numberOf(context.source)
      : value;
  return JSON.parse(text, exact as (name: string, value: unknown) => unknown);
}

/**
 * Reads GraphiQL's variables: JSON with comments and trailing commas. GraphiQL
 * has already rejected any other text.
 *
 * @throws Error if this browser would change a number
 */
export function parseVariables(text: string): unknown {
  const tree = parseTree(text, [], { allowTrailingComma: true });
  return tree && exactValue(tree, text);
}

function exactValue(
  { type, value, offset, length, children = [] }: Node,
  text: string,
): unknown {
  if (type === 'number') return numberOf(text.slice(offset, offset + length));
  if (type === 'array') return children.map((child) => exactValue(child, text));
  if (type !== 'object') return value;
  return Object.fromEntries(
    children.map(({ children: [name, of] = [] }) => [
      name?.value,
      of && exactValue(of, text),
    ]),
  );
}

// ECMAScript's JSON.rawJSON. TypeScript's library does not declare it yet, and
// browsers from before 2025 lack it.
const { rawJSON } = JSON as unknown as { rawJSON?(text: string): unknown };

function numberOf(source: string): unknown {
  const value = Number(source);
  if (`${value}` === source) return value;
  if (rawJSON) return rawJSON(source);
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  throw new Error(
    `This browser would change the number ${source}. Write it as a string: "${source}".`,
  );
}
