import { readFileSync } from 'node:fs';
import type { Database } from '#engine/database/database.js';
import { withRows } from './database-access.ts';

const withoutSpace = (text: string) => text.replace(/\s+/g, '');

/**
 * The statements in the comment at the head of a file of the engine's records:
 * each indented paragraph that begins with one of these words. Without white
 * space.
 */
export function printedIn(file: string): string[] {
  const path = `packages/engine/src/records/${file}`;
  const [head] = readFileSync(path, 'utf8').split('*/');
  return `${head}`
    .split(/^ \*(?! {3}).*$/m)
    .map((part) => withoutSpace(part.replace(/^ \*/gm, '')))
    .filter((part) => /^(?:select|with)/.test(part));
}

/** What `work` sends as statements of these names, without white space. */
export async function statementsOf(
  name: RegExp,
  database: Database,
  work: () => Promise<unknown>,
): Promise<string[]> {
  const sent: string[] = [];
  const note =
    (rows: Database['rows']) =>
    (statement: Parameters<typeof rows>[0], values: unknown[]) => {
      if (name.test(statement.name)) sent.push(withoutSpace(statement.text));
      return rows(statement, values) as never;
    };
  await withRows(database, note, work);
  return sent;
}
