import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { printSchema } from 'graphql';
import type { Module } from '../api/module.ts';
import { buildApp } from '../app.ts';
import { loadConfig } from '../config/config.ts';
import { Database } from '../database/database.ts';
import { modelOf } from '../modules/mikro-orm.config.ts';
import { configurationPage } from './configuration-page.ts';

/** The served contracts, by file name. Connects to no database. */
export async function contracts(modules: Module[]): Promise<Record<string, string>> {
  const config = loadConfig({ DATABASE_URL: 'postgres://nobody@127.0.0.1/none', LOG_LEVEL: 'silent' });
  const database = await Database.open({ ...config.database, connects: false }, modelOf(modules));
  const app = await buildApp({ config, database, modules });
  try {
    await app.ready();
    return {
      'openapi.json': `${JSON.stringify(app.swagger(), null, 2)}\n`,
      'schema.graphql': `${printSchema(app.graphqlSchema)}\n`,
    };
  } finally {
    await app.close();
    await database.close();
  }
}

/**
 * Writes the contracts to a folder, and `docs/configuration.md`; with `check`, compares them with the files there.
 *
 * @throws Error that names a file that differs
 */
export async function emitContracts(modules: Module[], folder: string, check: boolean): Promise<void> {
  const files = Object.entries(await contracts(modules)).map(([name, text]) => [join(folder, name), text] as const);
  for (const [path, served] of [...files, ['docs/configuration.md', configurationPage(modules)] as const]) {
    if (!check) await writeFile(path, served);
    else if ((await readFile(path, 'utf8')) !== served) {
      throw new Error(
        `${path} is not what the service serves; run \`npm run schema\`, look at the difference and commit it.`,
      );
    }
  }
}
