import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { printSchema } from 'graphql';
import { buildApp } from '../app.ts';
import { loadConfig } from '../config.ts';
import { Database } from '../database/database.ts';
import { createSchema } from '../graphql/schema.ts';
import { PetService } from '../pets/pet.service.ts';

/** The contracts as served, by file name. No database is asked. */
export async function contracts(): Promise<Record<string, string>> {
  const config = loadConfig({ DATABASE_URL: 'postgres://nobody@127.0.0.1/none', LOG_LEVEL: 'silent' });
  const database = await Database.open(config.database);
  const app = await buildApp({ config, database });
  try {
    await app.ready();
    const schema = await createSchema({ pets: new PetService(database, config.pets) });
    return {
      'openapi.json': `${JSON.stringify(app.swagger(), null, 2)}\n`,
      'schema.graphql': `${printSchema(schema)}\n`,
    };
  } finally {
    await app.close();
    await database.close();
  }
}

/** Writes the contracts to a folder; or, to check, compares them with what is there. @throws Error that names what differs */
export async function emitContracts(folder: string, check: boolean): Promise<void> {
  for (const [name, served] of Object.entries(await contracts())) {
    const path = join(folder, name);
    if (!check) await writeFile(path, served);
    else if ((await readFile(path, 'utf8')) !== served) {
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
    }
  }
}
