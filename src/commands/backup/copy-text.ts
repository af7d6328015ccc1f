/** A row as PostgreSQL sends it: the text of each value, or null. */
export type TextRow = Array<string | null>;

/** A line of COPY's text format (PostgreSQL's manual, COPY, "Text Format"), without its end. */
export function lineOf(row: TextRow): string {
  return row.map(escaped).join('\t');
}

/** The row in such a line. */
export function rowOf(line: string): TextRow {
  return line.split('\t').map(unescaped);
}

const nothing = '\\N';
const letters: Record<string, string> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};
const characters = Object.fromEntries(Object.entries(letters).map(([character, sequence]) => [sequence, character]));

function escaped(value: string | null): string {
  return value === null ? nothing : value.replace(/[\b\f\n\r\t\v\\]/g, (character) => letters[character] as string);
}

function unescaped(field: string): string | null {
  if (field === nothing) return null;
  return field.includes('\\') ? field.replace(/\\./g, (sequence) => characters[sequence] ?? sequence) : field;
}
