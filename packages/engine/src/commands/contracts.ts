import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Service } from '../feature.ts';
import { contracts } from '../process/contracts.ts';

const folder = 'schema';

/**
 * Writes the contracts to `schema/`; with `check`, compares them with the files.
 *
 * @throws Error that names a file that differs
 */
export async function emitContracts(
  service: Service,
  { check }: { check?: boolean },
) {
  const served = Object.entries(await contracts(service));
  if (!check) await mkdir(folder, { recursive: true });
  for (const [name, text] of served) {
    const path = join(folder, name);
    if (!check) await writeFile(path, text);
    else if ((await readFile(path, 'utf8')) !== text)
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
  }
}
