import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allVariables } from '../config/config.ts';
import type { VariableOwner, Variables } from '../config/variables.ts';
import type { Service } from '../feature.ts';
import { contracts } from '../process/contracts.ts';

/**
 * Writes the contracts to a folder, and `docs/configuration.md`; with `check`,
 * compares them with the files there.
 *
 * @throws Error that names a file that differs
 */
export async function emitContracts(
  service: Service,
  folder: string,
  check: boolean,
) {
  const { features } = service;
  const modules = await service.modules();
  const files = new Map<string, string>();
  for (const [name, text] of Object.entries(await contracts(modules, features)))
    files.set(join(folder, name), text);
  const page = configurationPage([...features, ...modules]);
  files.set('docs/configuration.md', page);
  for (const [path, served] of files) {
    if (!check) await writeFile(path, served);
    else if ((await readFile(path, 'utf8')) !== served) {
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
    }
  }
}

/**
 * `docs/configuration.md`: every variable, in the order of the configuration.
 */
export function configurationPage(owners: readonly VariableOwner[]): string {
  const all: Variables = allVariables(owners);
  const documented = Object.entries(all).filter(([, { desc }]) => desc !== '');
  const rows = documented.map(([name, { desc, takes, default: value }]) => {
    // An empty list, too.
    const isNone = `${value ?? ''}` === '';
    const meaning = desc.replace(/\((\w+\.md)\)\.$/, '([more]($1)).');
    return `| \`${name}\` | ${takes} | ${isNone ? 'none' : `\`${value}\``} | ${meaning} |\n`;
  });
  return `<!-- Written by \`npm run schema\` from config/config.ts, features and modules: change it there. -->

# Configuration

All configuration is in environment variables; \`start\` has flags for four of them ([cli.md](cli.md)). An empty variable counts as absent. An invalid configuration stops the start with a message that lists every mistake. So does a line of \`.env\` that sets no variable. A start and \`doctor\` report a name that is nearly one of these. The log line \`started\` has the values in force, without secrets. [.env.example](../.env.example) lists all variables for copying. Commas separate several values.

| variable | takes | default | meaning |
|---|---|---|---|
${rows.join('')}
The image has defaults of its own ([Dockerfile](../Dockerfile)).
`;
}
