import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { preparedFolder, prepareFolder } from '../packages/embedded-postgres/src/prepared-folder.ts';

/** A store with all tables and no rows, which new embedded stores are copied from: the last step of the build. */
const prepared = () => {
  const parent = join(import.meta.dirname, '..');
  const migrations = join(parent, 'migrations');
  const names = readdirSync(migrations).filter((name) => name.endsWith('.js'));
  return { parent, sources: [import.meta.filename, ...names.sort().map((name) => join(migrations, name))] };
};

/** @returns its folder; undefined when this build has made none, or a PostgreSQL is used. */
export function preparedStore({ url }: { url?: string | undefined } = {}): string | undefined {
  return url ? undefined : preparedFolder(prepared());
}

/** Makes it, unless it exists. */
export function prepareStore(): Promise<void> {
  return prepareFolder(prepared(), migrate);
}

/** No further databases are made in an embedded store; what they would be copied from is most of its files. */
const withoutTemplates = [
  'update pg_database set datistemplate = false',
  'drop database template0',
  'drop database template1',
  'checkpoint',
];

async function migrate(dataDir: string): Promise<void> {
  // Imported here, because most builds find nothing to do.
  const [{ loadConfig }, { Database }, { modelOf }, { modules }] = await Promise.all([
    import('./config.ts'),
    import('./storage/database/database.ts'),
    import('./mikro-orm.config.ts'),
    import('./modules.ts'),
  ]);
  const database = await Database.open(loadConfig({ DATA_DIR: dataDir }).database, modelOf(modules));
  try {
    await database.migrate();
    for (const text of withoutTemplates) await database.rows({ name: text, text }, []);
  } finally {
    await database.close();
  }
}
