/**
 * True when the text contains a COPY FROM STDIN. PGlite would look for the rows in the message itself, and terminate
 * (https://github.com/electric-sql/pglite/pull/1028).
 *
 * @param sql bytes as latin1 characters are sufficient.
 */
export function isCopyIn(sql: string): boolean {
  if (!mayBeCopyIn.test(sql)) return false;
  const statements = sql.replace(tokens, (_token, word?: string) => word ?? ' ');
  // Nested comments are not parsed; assume a COPY FROM STDIN.
  return copyIn.test(statements) || statements.includes('/*');
}

const mayBeCopyIn = /\bcopy\b.*\bstdin\b/is;
const copyIn = /\bcopy\b.*\bfrom\s+stdin\b/is;
// Words, because they may contain a dollar sign; and text that only looks like a statement: strings, quoted names,
// comments. A doubled quote ends one string and starts the next.
const tokens =
  /e'(?:[^'\\]|''|\\.)*'|([a-z_\x80-\xff][\w$\x80-\xff]*)|'[^']*'|"[^"]*"|\$((?:[a-z_\x80-\xff][\w\x80-\xff]*)?)\$.*?\$\2\$|--[^\n]*|\/\*(?:(?!\/\*).)*?\*\//gis;
