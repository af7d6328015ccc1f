/**
 * True when the text holds a COPY FROM STDIN: PGlite would look for the rows in the message itself, and end.
 *
 * @param sql bytes as latin1 characters will do.
 */
export function isCopyIn(sql: string): boolean {
  if (!mayBeCopyIn.test(sql)) return false;
  const statements = sql.replace(tokens, (_token, word?: string) => word ?? ' ');
  // Comments within comments are not taken apart: then it is one.
  return copyIn.test(statements) || statements.includes('/*');
}

const mayBeCopyIn = /\bcopy\b.*\bstdin\b/is;
const copyIn = /\bcopy\b.*\bfrom\s+stdin\b/is;
// Words, as they may hold a dollar; and what only looks like a statement: strings, quoted names, comments. A doubled quote
// is the end of one string and the beginning of the next.
const tokens =
  /e'(?:[^'\\]|''|\\.)*'|([a-z_\x80-\xff][\w$\x80-\xff]*)|'[^']*'|"[^"]*"|\$((?:[a-z_\x80-\xff][\w\x80-\xff]*)?)\$.*?\$\2\$|--[^\n]*|\/\*(?:(?!\/\*).)*?\*\//gis;
