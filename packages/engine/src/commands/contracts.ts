import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allVariables } from '../config/config.ts';
import type { VariableOwner, Variables } from '../config/variables.ts';
import type { Service } from '../feature.ts';
import { contracts } from '../process/contracts.ts';

/**
 * Writes the contracts to `schema/`, and the rows of all variables to the table
 * of a page; with `check`, compares them with the files.
 *
 * @throws Error that names a file that differs
 */
export async function emitContracts(
  service: Service,
  { check, variables: page }: { check?: boolean; variables?: string },
) {
  const folder = 'schema';
  const files = new Map<string, string>();
  for (const [name, text] of Object.entries(await contracts(service)))
    files.set(join(folder, name), text);
  if (page) {
    const owners = [...service.features, ...(await service.modules())];
    const text = await readFile(page, 'utf8');
    files.set(page, withRows(text, variableRows(owners)));
  }
  if (!check) await mkdir(folder, { recursive: true });
  for (const [path, served] of files) {
    if (!check) await writeFile(path, served);
    else if ((await readFile(path, 'utf8')) !== served) {
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
    }
  }
}

/** Replaces the rows of the first table in Markdown. */
const withRows = (page: string, rows: string) =>
  page.replace(/^(\|[-|]+\|\n)(?:\|.*\n)*/m, (_, head) => head + rows);

/** A row of Markdown for each variable, in the order of the configuration. */
export function variableRows(owners: readonly VariableOwner[]) {
  const all: Variables = allVariables(owners);
  const documented = Object.entries(all).filter(([, { desc }]) => desc !== '');
  const rows = documented.map(([name, { desc, takes, default: value }]) => {
    // An empty list, too.
    const isNone = `${value ?? ''}` === '';
    const meaning = desc.replace(/\((\w+\.md)\)\.$/, '([more]($1)).');
    return `| \`${name}\` | ${takes} | ${isNone ? 'none' : `\`${value}\``} | ${meaning} |\n`;
  });
  return rows.join('');
}
