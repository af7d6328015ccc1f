import { globSync } from 'node:fs';
import { join } from 'node:path';
import {
  preparedFolder,
  prepareFolder,
} from '@animal-store/pglite-server/prepared-folder';
import { root } from '../config/config.ts';

/**
 * A migrated store without rows, from which new embedded stores are copied. The
 * last step of the build creates it.
 */
const prepared = () => {
  const parent = join(root, 'dist');
  // Which migrations are listed is in the modules: files that none lists change
  // nothing.
  const folders = [
    'migrations/*',
    'src/modules/*',
    'src/modules/*/*.module',
    'src/process/prepared-store',
  ];
  const names = globSync(`{${folders}}.js`, { cwd: parent });
  return { parent, sources: names.sort().map((name) => join(parent, name)) };
};

/**
 * @returns its folder; undefined when the build did not create it, or
 *   DATABASE_URL is set
 */
export function preparedStore({
  url,
}: {
  url?: string | undefined;
} = {}): string | undefined {
  return url ? undefined : preparedFolder(prepared());
}

/** Creates it unless it exists. */
export function prepareStore(): Promise<void> {
  return prepareFolder(prepared(), migrate);
}

/**
 * Removes the template databases, which are most of its files and never used.
 */
const withoutTemplates = [
  'update pg_database set datistemplate = false',
  'drop database template0',
  'drop database template1',
  'checkpoint',
];

async function migrate(dataDir: string): Promise<void> {
  // Imported here, because most builds need no new store.
  const [{ loadConfig }, { Database }, { modelOf }, { modules }] =
    await Promise.all([
      import('../config/config.ts'),
      import('../database/database.ts'),
      import('../modules/mikro-orm.config.ts'),
      import('../modules/modules.ts'),
    ]);
  await Database.use(
    loadConfig({ DATA_DIR: dataDir }).database,
    modelOf(modules),
    async (database) => {
      await database.migrate();
      for (const text of withoutTemplates)
        await database.rows({ name: text, text }, []);
    },
  );
}
