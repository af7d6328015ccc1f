import { loadConfig } from '../config.ts';
import { modelOf } from '../mikro-orm.config.ts';
import { modules } from '../modules.ts';
import { preparedStore } from '../prepared-store.ts';
import type { BackupWork } from './backup/backup.commands.ts';
import { warnings, withDatabase } from './context.ts';

/** The work of `backup`, `restore` and `promote`. What they need is loaded now: other commands need none of it. */
export async function backupWork(): Promise<BackupWork> {
  const [{ backupTo, backupToStream }, { restoreFrom }, { promote }] = await Promise.all([
    import('./backup/backup.ts'),
    import('./backup/restore.ts'),
    import('./backup/promote.ts'),
  ]);
  const known = modelOf(modules).migrations.map(({ name }) => name);
  const embedded = (remedy: string) => {
    const { database } = loadConfig(process.env);
    if (database.url) throw new Error(`DATABASE_URL is set, and PostgreSQL has its own tools: ${remedy}`);
    return database;
  };
  return {
    backup(file, force, progress) {
      const options = embedded(`pg_dump --format=custom --file=${file} "$DATABASE_URL"`);
      return file === '-'
        ? backupToStream(process.stdout, options, progress)
        : backupTo(file, options, force, progress);
    },
    async restore(file, progress) {
      const options = embedded(`psql -v ON_ERROR_STOP=1 -f ${file} "$DATABASE_URL"`);
      const tables = await restoreFrom(file, { ...options, prepared: preparedStore(options) }, known, progress);
      return { tables, applied: await withDatabase(async ({ applied }) => applied, { migrate: 'always' }) };
    },
    promote(url, progress) {
      const { database: source } = loadConfig({ ...process.env, ...withoutUrls });
      const { database: target } = loadConfig({ ...process.env, ...withoutUrls, DATABASE_URL: url });
      return promote(source, { ...target, url, log: warnings }, known, progress);
    },
  };
}

const withoutUrls = { DATABASE_URL: '', DATABASE_DIRECT_URL: '', DATABASE_READ_URLS: '' };
