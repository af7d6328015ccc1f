/** A name in SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in SQL, with `standard_conforming_strings` on, as it always is here. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
